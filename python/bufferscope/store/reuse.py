"""Reusing stored runs: whether running again would give the same records, and what else has changed."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bufferscope.base.errors import StoreError
from bufferscope.model.scenario import Scenario
from bufferscope.store import tables
from bufferscope.store.metadata import ExperimentMetadata
from bufferscope.store.partition import Partition, partitions_in
from bufferscope.store.reading import is_run, read_metadata
from bufferscope.store.run import Run
from bufferscope.store.writing import rewrite_metadata

_log = logging.getLogger(__name__)


def stored(directory: Path, identity: str | None, scenario: Scenario, about: ExperimentMetadata) -> Run | None:
    """The run in this directory if it is undamaged, of this scenario and by an engine of this identity; else None.

    Its records stay as they are. `about` is what the experiment's file says now (title, document, expectations, ...);
    it replaces what `run.json` says, because none of it influences the records. If the run is damaged and has to be
    made again, the reason is logged.
    """
    if identity is None or not is_run(directory):
        return None
    try:
        meta = read_metadata(directory)
    except StoreError as error:
        _tell(str(error))
        return None
    if meta["engine_identity"] != identity or meta["scenario"] != scenario:
        return None
    if found := tables.damage(directory, meta):
        _tell(found)
        return None
    if any(meta.get(key) != value for key, value in about.items()):
        try:
            rewrite_metadata(directory, {**meta, **about})
        except FileNotFoundError:  # another process has just put its own run there
            return None
    return Run(directory)


class Wanted(NamedTuple):
    """The requirements for a run, as `stored` takes them."""

    identity: str | None
    scenario: Scenario
    about: Callable[[], ExperimentMetadata]


def stored_together(experiment_dir: Path, wanted: Callable[[str], Wanted | None]) -> dict[str, Run]:
    """The runs in the partitions of a directory that are wanted, by their names.

    The conditions are those of `stored`. `wanted` returns the requirements for a run of that name, or None.
    """
    found: dict[str, Run] = {}
    for directory in partitions_in(experiment_dir):
        try:
            partition = Partition(directory)
            alike = _alike(partition, wanted)
            if alike and (damage := partition.damage()):
                raise StoreError(damage)
            changed = {
                name: about
                for name, about in alike.items()
                if any(partition.metadata[partition.numbers[name]].get(key) != value for key, value in about.items())
            }
            if changed:
                partition.rewrite(changed)
        except StoreError as error:
            _tell(str(error))
        except FileNotFoundError:  # another process has just put its own partition there
            continue
        else:
            found |= {run.id: run for run in Run.all_in(partition) if run.id in alike}
    return found


def _alike(partition: Partition, wanted: Callable[[str], Wanted | None]) -> dict[str, ExperimentMetadata]:
    """The wanted runs of a partition, each with the current values from the experiment's file."""
    alike: dict[str, ExperimentMetadata] = {}
    for name, meta in zip(partition.names, partition.metadata, strict=True):
        want = wanted(name)
        if want and want.identity and (meta["engine_identity"], meta["scenario"]) == (want.identity, want.scenario):
            alike[name] = want.about()
    return alike


def _tell(damage: str) -> None:
    """Log why a stored run is not reused. If the program has no log handler, Python prints this to standard error."""
    _log.warning("not reused, but made again: %s", damage)
