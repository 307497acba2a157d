"""The settings that a run's metadata records as chosen."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bufferscope.store.metadata import Metadata

WORDS = ("title", "source", "description", "notes", "figures", "expect", "sweep")
"""Keys of an experiment file that engines don't get; a run records its own values of `sweep` separately."""


def settings(meta: "Metadata") -> dict[str, str]:
    """The settings that a run's `run.json` records as chosen: overrides and swept values, path to value as written.

    >>> settings({"overrides": ["duration=5s", "title=x"], "point": {"link.a.queue.limit": "50p"}})
    {'duration': '5s', 'link.a.queue.limit': '50p'}
    """
    chosen = (override.partition("=") for override in meta["overrides"])
    changed = {path.strip(): value.strip() for path, _, value in chosen if path.split(".")[0].strip() not in WORDS}
    return {**changed, **meta["point"]}
