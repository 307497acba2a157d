"""What is derived from a stored run, kept as long as the run is: a command's text and its page need the same."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from bufferscope.metrics.records import RunRecords

Made = TypeVar("Made")

_kept: WeakKeyDictionary[RunRecords, dict[Callable[..., object], Any]] = WeakKeyDictionary()


def once(derive: Callable[[RunRecords], Made]) -> Callable[[RunRecords], Made]:
    """The function, which is called once for each stored run."""

    @wraps(derive)
    def kept(run: RunRecords) -> Made:
        (found,) = each_once(derive, [run], lambda: [derive(run)])
        return found

    return kept


def each_once(key: Callable[..., object], runs: Sequence[RunRecords], derive: Callable[[], list[Made]]) -> list[Made]:
    """What `derive` makes of each of the runs; it is not called if all are kept under this key."""
    if all(_is_stored(run) and key in _kept.get(run, ()) for run in runs):
        return [_kept[run][key] for run in runs]
    made = derive()
    for run, each in zip(runs, made, strict=True):
        if _is_stored(run):
            _kept.setdefault(run, {})[key] = each
    return made


def _is_stored(run: RunRecords) -> bool:
    """Whether the records of a run no longer change; only such a run keeps its metrics, too."""
    return hasattr(type(run), "metrics")
