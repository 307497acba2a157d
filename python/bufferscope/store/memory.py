"""A run whose records are in memory: the result of a simulation in steps."""

from pathlib import Path
from typing import TYPE_CHECKING

from bufferscope import _core
from bufferscope.base.errors import EngineError
from bufferscope.store.metadata import Metadata
from bufferscope.store.run import BaseRun, Run
from bufferscope.store.writing import directory_name, prepare, staged, write_metadata

if TYPE_CHECKING:
    from os import PathLike

    import polars as pl


class MemoryRun(BaseRun):
    """A run in memory; it has the tables, metrics and figures of a stored run."""

    def __init__(self, meta: Metadata, core: _core.Simulation) -> None:
        """Take over a finished simulation.

        Parameters
        ----------
        meta
            The content of `run.json`.
        core
            The simulation in the native core.
        """
        self.meta = meta
        self._core = core

    @property
    def id(self) -> str:
        """The name of the directory in which the run would be stored."""
        meta = self.meta
        return directory_name(meta["point"], meta["engine"], meta["seed"], meta["scenario"])

    def save(self, out: "str | PathLike[str]" = "results") -> Run:
        """Store the run, as `bufferscope.run` does.

        Parameters
        ----------
        out
            The directory under which it is stored.

        Returns
        -------
        Run
            The stored run.

        Raises
        ------
        InputError
            `out` can't be written.
        EngineError
            Writing failed later.
        """
        directory = Path(out) / self.experiment / self.id
        prepare(directory.parent)
        try:
            with staged(directory) as staging:
                self._core.write(staging)
                write_metadata(staging, self.meta)
        except (OSError, _core.TablesError) as error:
            raise EngineError(f"cannot write {directory}: {error}") from None
        return Run(directory)

    def _table(self, name: str) -> "pl.DataFrame":
        import polars as pl

        return frame(self._core, name).select(pl.lit(self.id).alias("run"), pl.all())

    def __repr__(self) -> str:
        return f"MemoryRun({self.id!r})"


def frame(core: _core.Simulation, table: str) -> "pl.DataFrame":
    """The rows of a table so far."""
    import polars as pl

    return pl.read_ipc_stream(core.table(list(_core.TABLES).index(table)))
