"""Making another experiment of a user's own: what is left out of its file, and names for what is added."""

from bufferscope.model.scenario import Scenario

ABOUT = ("source", "description", "notes", "figures", "repeat", "expect", "sweep", "title")
"""Keys of the file that are about the experiment that it was."""
PING = "latency"
"""The name of a ping that is added."""


def unused_name(scenario: Scenario, name: str) -> str:
    """A name for further traffic: this one, or with a number if the scenario has it."""
    taken = {entry["name"] for entry in scenario["traffic"]}
    return next(found for found in (name, *(f"{name}-{number}" for number in range(2, 1002))) if found not in taken)
