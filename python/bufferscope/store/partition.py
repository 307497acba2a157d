"""Partitions: many short runs in one directory.

    OUT/<experiment>/runs-<engine>-<digest>/
        runs.json           the content of `run.json` for each run; what all runs share is stored once
        <table>.parquet     one file per table; its first column, `run`, is a run's index in `runs.json`, from 0

A partition is written, replaced and checked like the directory of a run. `Run` opens a run in it by the path
`<partition>/<name>`, as if the run were a directory there.
"""

import json
import secrets
import sys
import threading
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, TypedDict, cast

from msgspec import Meta

from bufferscope import _core
from bufferscope.base.bounded import matching
from bufferscope.base.errors import StoreError
from bufferscope.store import FORMAT, PARTIAL, RUNS, tables
from bufferscope.store.metadata import Metadata, TableFile, checked
from bufferscope.store.reading import DAMAGED, check_directory, has_file, read_json
from bufferscope.store.required import Empty
from bufferscope.store.schema import Check, Mismatch, remembering

if TYPE_CHECKING:
    import polars as pl

RUN = "run"
"""The column with the number of a row's run."""
LARGEST_RUNS_BYTES = 256 << 20
"""A bound above the size of `runs.json` for a few hundred runs of the largest scenarios."""
_NAME = matching("[A-Za-z0-9][A-Za-z0-9._-]{0,254}", "a name of letters, digits, '.', '_' and '-'")
_Files = TypedDict(  # type: ignore[misc]  # the tables are those of the native core
    "_Files",
    {table: NotRequired[TableFile] if table in _core.OPTIONAL_TABLES else TableFile for table in _core.TABLES},
)


class _PartitionDocument(TypedDict):
    """The content of `runs.json`."""

    files: _Files
    names: Annotated[list[Annotated[str, _NAME]], Meta(min_length=1)]
    common: Empty
    own: Annotated[list[Empty], Meta(min_length=1)]


_SHAPE = Check(_PartitionDocument)


class RunFacts(NamedTuple):
    """A few facts of a run's metadata, which stay in memory for every run."""

    experiment: str
    engine: str
    seed: int
    position: int
    group: str | None
    """The group of the population that it is a member of; None if it is no member."""
    most_rows: int
    """The rows of its largest table."""

    @classmethod
    def of(cls, metadata: Metadata) -> "RunFacts":
        """The facts of this metadata."""
        return cls(
            sys.intern(metadata["experiment"]),
            sys.intern(metadata["engine"]),
            metadata["seed"],
            metadata["position"],
            sys.intern(metadata["member"]["group"]) if "member" in metadata else None,
            max(metadata["tables"].values(), default=0),
        )


class Partition:
    """A directory with the tables of many runs."""

    def __init__(self, path: Path) -> None:
        """Open a partition; raises `StoreError` if its `runs.json` is damaged."""
        self.path = path
        found = read_json(path / RUNS, LARGEST_RUNS_BYTES)
        check_directory(path)
        try:
            _SHAPE(found, "")
            if len(found["own"]) != len(found["names"]) or len(set(found["names"])) < len(found["names"]):
                raise Mismatch("names", found["names"], f"{len(found['own'])} different names, one for each run")
            with remembering():  # `metadata` holds all of it
                metadata = [checked(merged(found["common"], own)) for own in found["own"]]
        except Mismatch as mismatch:
            raise StoreError(f"{path / RUNS}: {mismatch}: {DAMAGED}") from None
        except RecursionError:
            raise StoreError(f"{path / RUNS}: nested too deeply: {DAMAGED}") from None
        self.names: Sequence[str] = found["names"]
        """The runs' names, in the order of their numbers."""
        self.files: Mapping[str, TableFile] = found["files"]
        self.facts: Sequence[RunFacts] = [RunFacts.of(each) for each in metadata]
        """What is asked of each run most often."""
        self._packed = _packed(metadata)
        _recent.put(self, metadata)

    @property
    def metadata(self) -> Sequence[Metadata]:
        """The metadata of each run. Only that of the partitions used last is in memory; the rest is compressed."""
        found = _recent.get(self)
        if found is None:
            found = _unpacked(self._packed)
            _recent.put(self, found)
        return found

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each run by its name."""
        return {name: number for number, name in enumerate(self.names)}

    def scan(self, table: str) -> "pl.LazyFrame":
        """A table of all runs as a lazy frame; raises `StoreError` if it is damaged."""
        import polars as pl

        rows = sum(metadata["tables"].get(table, 0) for metadata in self.metadata)
        if self._is_absent(table) and not rows:
            return tables.nothing(table).lazy().select(pl.lit(0, pl.Int32).alias(RUN), pl.all()).clear()
        return tables.scan(self.path, table, self._content(table), rows, RUN)

    def damage(self) -> str | None:
        """What is wrong with the files of the tables, in words; None if they are as they were written."""
        for table in _core.TABLES:
            if self._is_absent(table):
                continue
            try:
                self._content(table)
            except StoreError as error:
                return str(error).removesuffix(f": {DAMAGED}")
        return None

    def rewrite(self, changed: Mapping[str, Mapping[str, object]]) -> None:
        """Change some keys of these runs' metadata. The file is replaced atomically."""
        changes = [changed.get(name, {}) for name in self.names]
        metadata = [checked({**metadata, **change}) for metadata, change in zip(self.metadata, changes, strict=True)]
        self._packed = _packed(metadata)
        _recent.put(self, metadata)
        content = _text(self.names, metadata, self.files)
        temporary = self.path / f"{PARTIAL}{RUNS}-{secrets.token_hex(4)}"
        try:
            temporary.write_text(content, encoding="utf-8")
            temporary.replace(self.path / RUNS)
        finally:
            temporary.unlink(missing_ok=True)

    def _is_absent(self, table: str) -> bool:
        return table in _core.OPTIONAL_TABLES and table not in self.files

    def _content(self, table: str) -> bytes:
        return tables.content(self.path, table, self.files.get(table), self._cause)

    def _cause(self) -> str:
        """Why a table is not the one that was there when the partition was opened."""
        if Partition(self.path).files != self.files:
            return "another partition has taken its place since it was loaded; load it again"
        return DAMAGED


class _Recent:
    """The metadata of the partitions that were used last; safe to use from several threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[int, tuple[weakref.ref[Partition], Sequence[Metadata]]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, partition: Partition, metadata: Sequence[Metadata]) -> None:
        with self._lock:
            self._kept[id(partition)] = weakref.ref(partition), metadata
            self._kept.move_to_end(id(partition))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def get(self, partition: Partition) -> Sequence[Metadata] | None:
        with self._lock:
            owner, metadata = self._kept.get(id(partition), (None, None))
            if owner is None or owner() is not partition:
                return None
            self._kept.move_to_end(id(partition))
            return metadata


MOST_UNPACKED = 40
"""The most partitions whose metadata is in memory: about 10,000 runs."""
_recent = _Recent(MOST_UNPACKED)


def _packed(metadata: Sequence[Metadata]) -> bytes:
    """Metadata of runs, compressed to some per cent of its size in memory."""
    return zlib.compress(json.dumps(divided(metadata)).encode(), 1)


def _unpacked(packed: bytes) -> list[Metadata]:
    common, own = json.loads(zlib.decompress(packed))
    return [cast(Metadata, merged(common, each)) for each in own]


def is_partition(directory: Path) -> bool:
    """Whether the directory holds a partition, damaged or not; raises `StoreError` without the permission to look."""
    return has_file(directory, RUNS)


def partitions_in(experiment_dir: Path) -> list[Path]:
    """The directories of partitions in the directory of an experiment's runs."""
    if not experiment_dir.is_dir():
        return []
    return sorted(entry for entry in experiment_dir.glob("[!.]*") if is_partition(entry))


def directory_of(experiment_dir: Path, engine: str, names: Sequence[str]) -> Path:
    """The directory in `experiment_dir` for the partition of these runs of an engine."""
    digest = sha256("\n".join(names).encode()).hexdigest()[:16]
    return experiment_dir / f"runs-{engine}-{digest}"


def write(directory: Path, names: Sequence[str], metadata: Sequence[Mapping[str, Any]]) -> None:
    """Write `runs.json` beside the tables. It must be the last file of a partition to be written."""
    (directory / RUNS).write_text(_text(names, metadata, tables.digests(directory)), encoding="utf-8")


def merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a run: the part that all runs share, merged recursively with the run's own part.

    >>> merged({"seed": 1, "scenario": {"a": 1}}, {"scenario": {"b": 2}})
    {'seed': 1, 'scenario': {'a': 1, 'b': 2}}
    """
    both = {key: _merged(common[key], own[key]) if key in own else common[key] for key in common}
    return both | {key: value for key, value in own.items() if key not in common}


def _merged(common: Any, own: Any) -> Any:
    return merged(common, own) if isinstance(common, dict) and isinstance(own, dict) else own


def divided(whole: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The inverse of `merged`: the part that all runs share, and the own part of each run.

    >>> divided([{"seed": 1, "point": {"a": 1, "b": 2}}, {"seed": 1, "point": {"a": 1, "b": 3}}])
    ({'seed': 1, 'point': {'a': 1}}, [{'point': {'b': 2}}, {'point': {'b': 3}}])
    """
    common: dict[str, Any] = {}
    own: list[dict[str, Any]] = [{} for _ in whole]
    for key in dict.fromkeys(key for each in whole for key in each):
        values = [each.get(key, _ABSENT) for each in whole]
        if all(value == values[0] for value in values):
            common[key] = values[0]
        elif all(isinstance(value, dict) for value in values):
            common[key], parts = divided(values)
            for each, part in zip(own, parts, strict=True):
                each.update({key: part} if part else {})
        else:
            for each, value in zip(own, values, strict=True):
                each.update({} if value is _ABSENT else {key: value})
    return common, own


_ABSENT = object()


def _text(names: Sequence[str], metadata: Sequence[Mapping[str, Any]], files: Mapping[str, TableFile]) -> str:
    """The content of `runs.json`: one line for each run."""
    common, own = divided([{key: value for key, value in each.items() if key != "files"} for each in metadata])
    head = {"format": FORMAT, "files": files, "names": list(names), "common": common}
    return "".join(_lines(head, own))


def _lines(head: Mapping[str, object], own: Sequence[object]) -> Iterator[str]:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    yield "{\n" + "".join(f" {encode(key)}: {encode(value)},\n" for key, value in head.items()) + ' "own": [\n'
    yield ",\n".join(encode(each) for each in own)
    yield "\n ]\n}\n"
