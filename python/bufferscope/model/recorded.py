"""Which tables a scenario records."""

import json
from collections.abc import Collection

from bufferscope import _core
from bufferscope.model.metric_definitions import definition
from bufferscope.model.scenario import Scenario


def recorded(scenario: Scenario) -> list[str]:
    """The tables that are recorded: all of them unless the experiment's `record` names some."""
    every = [table for table in _core.TABLES if table not in _core.OPTIONAL_TABLES]
    return list[str](scenario.get("record", every))


def unrecorded(scenario: Scenario) -> list[str]:
    """The tables that are not recorded, and are empty for that reason."""
    known = recorded(scenario)
    return [table for table in _core.TABLES if table not in known and table not in _core.OPTIONAL_TABLES]


def missing(metric: str, empty: Collection[str]) -> str | None:
    """The first of these empty tables without which a metric can't be computed; None if it needs none of them."""
    known = definition(metric) if empty else None
    return next((table for table in known.tables if table in empty), None) if known else None


def explanation(scenario: Scenario, table: str) -> str:
    """Why a table has no rows although the engine could measure them, in words.

    >>> explanation({"record": ["probes", "queues"]}, "flows")
    'flows are not recorded: record = ["probes", "queues"]'
    """
    verb = "is" if table == "capacity" else "are"
    return f"{table} {verb} not recorded: record = {json.dumps(recorded(scenario))}"
