"""The runs of one experiment as a result."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from bufferscope.base.attach import attached
from bufferscope.base.errors import InputError, StoreError
from bufferscope.base.names import closest
from bufferscope.base.strict_json import finite
from bufferscope.model.table_names import FRAME_NAMES, TABLE_NAMES, FrameName, TableName
from bufferscope.results.entries import gathered
from bufferscope.results.expectations import evaluate
from bufferscope.results.variation import Variation
from bufferscope.results.verdicts import ExpectationResult
from bufferscope.store.run import Run

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from bufferscope.model.experiment import ExperimentDocument

    Chart = alt.LayerChart | alt.ConcatChart


class Result:
    """What `bufferscope.run` and `bufferscope.load` return: runs of one experiment, in the order of its points.

    The tables (`probes`, `flows`, ...) contain those of all runs, one after the other. Their first columns distinguish
    the runs: `run`, `engine`, `seed`, and one column for every setting that varies, such as
    `link.bottleneck.queue.limit`.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        """Combine runs of one experiment.

        Parameters
        ----------
        runs
            At least one run; all of the same experiment.

        Raises
        ------
        StoreError
            There are no runs, or they are of several experiments.
        """
        experiments = list(dict.fromkeys(run.experiment for run in runs))
        if len(experiments) != 1:
            found = " and ".join(experiments) or "no run"
            raise StoreError(f"a result has the runs of one experiment: found {found}")
        self.runs = tuple(runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> "Iterator[Run]":
        return iter(self.runs)

    @overload
    def __getitem__(self, index: int) -> Run: ...

    @overload
    def __getitem__(self, index: slice) -> "Result": ...

    def __getitem__(self, index: "int | slice") -> "Run | Result":
        """A run by its index, or the result of some runs by a slice, which must not be empty."""
        return Result(self.runs[index]) if isinstance(index, slice) else self.runs[index]

    def filter(self, condition: "Callable[[Run], object] | None" = None, /, **settings: "str | int") -> "Result":
        """The result of the runs that fulfil a condition.

        Parameters
        ----------
        condition
            Called with each run; true for those to keep. Default: all.
        **settings
            Values of columns that distinguish the runs, as `summary` takes them: `engine="sim"`, `seed=1`, or
            `**{"link.bottleneck.queue.limit": "100p"}`.

        Returns
        -------
        Result
            At least one run.

        Raises
        ------
        InputError
            No run is left, or no column is called so.
        """
        kept = [
            run
            for run, row in zip(self.runs, self._rows(list(settings)), strict=True)
            if row == tuple(map(str, settings.values())) and (condition is None or condition(run))
        ]
        if not kept:
            wanted = ", ".join(f"{name}={value!r}" for name, value in settings.items()) or "the condition"
            raise InputError(f"filter: none of the {len(self)} runs fulfils {wanted}")
        return Result(kept)

    def group_by(self, *by: str) -> "dict[tuple[str, ...], Result]":
        """The runs in groups, each with equal values of some columns.

        Parameters
        ----------
        *by
            Names of columns that distinguish the runs: `engine`, `seed`, `group` (of a population), a path of a
            setting, or another of `varying`.

        Returns
        -------
        dict
            The result of each group by its values, in the order of the first runs. A value is empty if a run does not
            have the setting.

        Raises
        ------
        InputError
            No column is called so.
        """
        grouped: dict[tuple[str, ...], list[Run]] = {}
        for run, row in zip(self.runs, self._rows(by), strict=True):
            grouped.setdefault(row, []).append(run)
        return {row: Result(runs) for row, runs in grouped.items()}

    def summary(self, by: Sequence[str] | None = None, metrics: Sequence[str] | None = None) -> "pl.DataFrame":
        """Every metric of every group of runs: its mean with the 95 % confidence interval.

        Parameters
        ----------
        by
            Names of columns, as `group_by` takes them. Default: all that vary except the seed, so that the runs of a
            group are repetitions.
        metrics
            Names of metrics. Default: all.

        Returns
        -------
        polars.DataFrame
            One row for each group and metric: the columns `by`, then `metric, unit, n, mean, low, high, median,
            censored`.
            `n` is the number of runs with the metric; `low` and `high` are null with fewer than two. Where a value is
            censored, its numbers are null.

        Raises
        ------
        InputError
            No column is called so.
        """
        import polars as pl

        from bufferscope.metrics.measuring import of_each
        from bufferscope.metrics.tables import aggregate
        from bufferscope.model.metric_definitions import definition

        names = list(self.varying if by is None else by)
        rows = []
        for values, group in self.group_by(*names).items():
            for name, found in aggregate(list(of_each(group.runs))).items():
                if metrics is None or name in metrics:
                    known = definition(name)
                    values_of = map(finite, (found.mean, found.low, found.high, found.median))
                    rows.append((*values, name, known.unit if known else "", found.n, *values_of, found.censored))
        texts = [(name, pl.String) for name in (*names, "metric", "unit")]
        numbers = [(name, pl.Float64) for name in ("mean", "low", "high", "median")]
        return pl.DataFrame(rows, [*texts, ("n", pl.Int64), *numbers, ("censored", pl.Boolean)], orient="row")

    def _rows(self, names: Sequence[str]) -> "list[tuple[str, ...]]":
        """The values of some columns in each run, empty where it has none; raises `InputError` for another name."""
        rows = [
            {**run.settings, **varying, "engine": run.engine, "seed": str(run.seed), "group": run.facts.group or ""}
            for run, varying in zip(self.runs, self.variation.values, strict=True)
        ]
        known = ["engine", "seed", *sorted(set(self.varying).union(*rows) - {"engine", "seed", "group"})]
        known += ["group"] if any(row["group"] for row in rows) else []
        for name in names:
            if name not in known:
                raise InputError(f"no column is called {name!r}{closest(name, known)}; there are {', '.join(known)}")
        return [tuple(row.get(name, "") for name in names) for row in rows]

    @property
    def experiment(self) -> str:
        """The experiment's name, as in the catalogue."""
        return self.runs[0].experiment

    @cached_property
    def document(self) -> "ExperimentDocument":
        """The texts of the experiment's file: `title`, `description`, ...; its `sweep` has only these runs' values."""
        meta = self.runs[0].meta
        swept = dict.fromkeys(path for run in self.runs for path in run.point)
        sweep = {path: list(dict.fromkeys(run.point[path] for run in self.runs if path in run.point)) for path in swept}
        words = meta["document"]
        return {
            "title": words.get("title") or meta["title"],
            "source": words.get("source"),
            "document": words.get("document") or words.get("source"),
            "description": words.get("description"),
            "figures": words.get("figures") or [],
            "notes": words.get("notes"),
            "repeat": words.get("repeat", 1),
            "sweep": sweep,
        }

    @property
    def overrides(self) -> list[str]:
        """The overrides (`--set PATH=VALUE`) that all runs have in common; `Run.settings` has the others."""
        first, *others = (run.meta["overrides"] for run in self.runs)
        return [override for override in first if all(override in other for other in others)]

    @cached_property
    def variation(self) -> Variation:
        """What differs among the runs, and the labels made from that."""
        return Variation(self.runs)

    @property
    def varying(self) -> tuple[str, ...]:
        """What differs among the runs besides their seeds: paths of settings, and `engine`, `kernel` or `experiment`.

        If the experiment's file was edited between runs, their scenarios can differ although their settings are the
        same. Then this includes the paths of the differing keys of the scenarios.
        """
        return self.variation.keys

    @cached_property
    def variants(self) -> list["Result"]:
        """The result split into variants: each has the runs of one version of the file with the same overrides."""
        files: dict[str, list[Run]] = {}
        for run in self.runs:
            told = [run.meta["overrides"], run.meta["document"]]
            files.setdefault(json.dumps(told, sort_keys=True), []).append(run)
        return [Result(runs) for runs in files.values()]

    @property
    def by_engine(self) -> dict[str, list[Run]]:
        """The runs of each engine, in their order."""
        names = dict.fromkeys(run.engine for run in self.runs)
        return {name: [run for run in self.runs if run.engine == name] for name in names}

    @cached_property
    def probes(self) -> "pl.DataFrame":
        """Every run's `Run.probes`."""
        return self.scan("probes").collect()

    @cached_property
    def flows(self) -> "pl.DataFrame":
        """Every run's `Run.flows`."""
        return self.scan("flows").collect()

    @cached_property
    def queues(self) -> "pl.DataFrame":
        """Every run's `Run.queues`."""
        return self.scan("queues").collect()

    @cached_property
    def flow_queues(self) -> "pl.DataFrame":
        """Every run's `Run.flow_queues`."""
        return self.scan("flow_queues").collect()

    @cached_property
    def drops(self) -> "pl.DataFrame":
        """Every run's `Run.drops`."""
        return self.scan("drops").collect()

    @cached_property
    def transfers(self) -> "pl.DataFrame":
        """Every run's `Run.transfers`."""
        return self.scan("transfers").collect()

    @cached_property
    def sojourns(self) -> "pl.DataFrame":
        """Every run's `Run.sojourns`."""
        return self.scan("sojourns").collect()

    @cached_property
    def capacity(self) -> "pl.DataFrame":
        """Every run's `Run.capacity`."""
        return self.scan("capacity").collect()

    @cached_property
    def estimates(self) -> "pl.DataFrame":
        """Every run's `Run.estimates`."""
        return self.scan("estimates").collect()

    @cached_property
    def round_trips(self) -> "pl.DataFrame":
        """Every run's `Run.round_trips`."""
        return self.scan("round_trips").collect()

    @cached_property
    def retransmissions(self) -> "pl.DataFrame":
        """Every run's `Run.retransmissions`."""
        return self.scan("retransmissions").collect()

    @cached_property
    def one_way(self) -> "pl.DataFrame":
        """Every run's `Run.one_way`."""
        return self.scan("one_way").collect()

    @cached_property
    def hops(self) -> "pl.DataFrame":
        """Every run's `Run.hops`."""
        return self.scan("hops").collect()

    @cached_property
    def stages(self) -> "pl.DataFrame":
        """Every run's `Run.stages`."""
        return self.scan("stages").collect()

    @cached_property
    def members(self) -> "pl.DataFrame":
        """The members of a population: one row per run, with its `group` and one column for every key that was drawn.

        Values are strings, as in experiment files; null where nothing was drawn. Without a population, it is empty.
        """
        import polars as pl

        drawn = [(index, run.meta["member"]) for index, run in enumerate(self.runs) if "member" in run.meta]
        keys = list(dict.fromkeys(key for _, member in drawn for key in member["values"]))
        rows = [(index, member["group"], *map(member["values"].get, keys)) for index, member in drawn]
        schema = {"run": pl.Int32} | dict.fromkeys(["group", *keys], pl.String)
        return self._with_run_columns(pl.LazyFrame(rows, schema=schema, orient="row")).collect()

    @cached_property
    def metrics(self) -> "pl.DataFrame":
        """One row per run and metric: `run, engine, seed`, what varies, `metric, value, censored` (value null)."""
        from bufferscope.metrics.tables import numbered

        return self._with_run_columns(numbered(self.runs).lazy()).collect()

    @cached_property
    def expectations(self) -> list[ExpectationResult]:
        """The statements of the experiment's document, compared with the measurements of each engine separately.

        If there are several variants, each is compared with the statements of its own file.
        """
        return [evaluated for variant in self.variants for evaluated in evaluate(gathered(variant.runs), variant.runs)]

    @cached_property
    def figures(self) -> "Mapping[str, Chart]":
        """The charts by name, as in `result.figures["rtt"]`; a chart is drawn when it is looked up."""
        found: Mapping[str, Chart] = attached("figures")(self)
        return found

    def report(self, path: str | PathLike[str], *, stills: bool = False) -> Path:
        """Write a page with the figures, metrics and expectations of the result.

        Parameters
        ----------
        path
            The directory for `index.html`, which is made if needed.
        stills
            Draw each chart also as a picture, for paper and as files in `figures/`; see `bs.report.build`.

        Returns
        -------
        pathlib.Path
            The page.

        Raises
        ------
        InputError
            The result has more points than a page can show.
        """
        page: Path = attached("report")([self], path, stills=stills)
        return page

    def metric(self, name: str) -> "pl.DataFrame":
        """One metric of every run.

        Parameters
        ----------
        name
            A metric, as in `"goodput.total_mbit"`, or any whole percentile, as in `"rtt.p37_ms"`. The unit is its last
            word.

        Returns
        -------
        polars.DataFrame
            One row for each run: `run, engine, seed`, what varies, `value, censored`. `value` is null where lost probes
            hide it; `censored` is then true.

        Raises
        ------
        metrics.UnknownMetricError
            No run has a metric of this name; the text has the nearest names.
        """
        from bufferscope.metrics.tables import column

        return self._with_run_columns(column(self.runs, name).lazy()).collect()

    def scan(self, name: TableName) -> "pl.LazyFrame":
        """One table of all runs as a lazy frame. A query reads only the columns that it needs.

        Parameters
        ----------
        name
            A key of `bufferscope.TABLES`: `"probes"`, `"flows"`, ...

        Returns
        -------
        polars.LazyFrame
            The rows of every run, one after the other. Times are integer nanoseconds; the name of a column ends in its
            unit.

        Raises
        ------
        InputError
            There is no table of this name.
        StoreError
            A table is damaged.
        """
        from bufferscope.metrics.batch import Batch

        if name not in TABLE_NAMES:
            raise InputError(f"no table is called {name!r}{closest(name, TABLE_NAMES)}")
        return self._with_run_columns(Batch(self.runs).whole(name))

    def table(self, name: FrameName) -> "pl.DataFrame":
        """One table of all runs.

        Parameters
        ----------
        name
            A key of `bufferscope.TABLES`, or `"metrics"`.

        Returns
        -------
        polars.DataFrame
            The same as the attribute of this name.

        Raises
        ------
        InputError
            There is no table of this name.
        StoreError
            A table is damaged.
        """
        if name not in FRAME_NAMES:
            raise InputError(f"no table is called {name!r}{closest(name, FRAME_NAMES)}")
        frame: pl.DataFrame = getattr(self, name)
        return frame

    def to_pandas(self, name: FrameName = "metrics") -> Any:
        """One table of all runs as a pandas frame.

        Parameters
        ----------
        name
            A key of `bufferscope.TABLES`, or `"metrics"`.

        Returns
        -------
        pandas.DataFrame
            The rows of `table(name)`.

        Raises
        ------
        InputError
            There is no table of this name, or pandas is not installed.
        """
        from bufferscope.results.frames import to_pandas

        return to_pandas(self.table(name))

    def _repr_html_(self) -> str:
        return str(attached("Result.html")(self))

    def _with_run_columns(self, frame: "pl.LazyFrame") -> "pl.LazyFrame":
        """A frame whose column `run` is the index of a run, with columns that distinguish the runs."""
        from bufferscope.results.frames import with_run_columns

        return with_run_columns(frame, self.runs, self.variation)

    def __repr__(self) -> str:
        return f"Result({self.experiment!r}, {len(self.runs)} run{'s' * (len(self.runs) != 1)})"
