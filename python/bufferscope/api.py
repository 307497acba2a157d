"""The functions that most people need: run an experiment, choose a queue, load stored runs, compare runs."""

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bufferscope.base.arguments import (
    EXPERIMENT,
    FLAG,
    NAME,
    NAMES,
    NUMBER,
    OVERRIDES,
    PATH,
    PATHS,
    STRINGS,
    WATCHER,
    checked,
    optional,
)
from bufferscope.base.errors import InputError
from bufferscope.engines import EngineName, engines, one_engine
from bufferscope.model.experiment import load as load_experiment
from bufferscope.model.overrides import Overrides, as_texts
from bufferscope.results.result import Result
from bufferscope.running.executors import Watcher
from bufferscope.running.layout import StorageLayout
from bufferscope.running.plan import execute, plan
from bufferscope.store.finding import find

if TYPE_CHECKING:
    from bufferscope.analysis.fixing.advice import Advice
    from bufferscope.store.run import Run
    from bufferscope.store.verdict import PhaseKind
    from bufferscope.studies.choice import Choice
    from bufferscope.studies.comparison import Comparison
    from bufferscope.studies.comparison.inputs import What
    from bufferscope.studies.modelling.fitting import LineFit


_OF_RUNS = {
    "name_or_path": EXPERIMENT,
    "overrides": OVERRIDES,
    "out": PATH,
    "kernel": optional(NAME),
    "reuse": FLAG,
    "watcher": WATCHER,
    "cluster": optional(NAME),
}
"""The arguments of everything that runs an experiment; numbers are checked where they are used."""


@checked(**_OF_RUNS, engine=NAMES, capture=FLAG, layout=NAME)
def run(
    name_or_path: str | PathLike[str],
    overrides: Overrides = (),
    *,
    seed: int = 1,
    repeat: int | None = None,
    jobs: int | None = None,
    out: str | PathLike[str] = "results",
    engine: EngineName | Sequence[EngineName] = "sim",
    kernel: str | None = None,
    reuse: bool = False,
    capture: bool = False,
    watcher: Watcher | None = None,
    cluster: str | None = None,
    layout: StorageLayout = "auto",
) -> Result:
    """Run an experiment: every point of its sweep, with one or several seeds.

    The runs are stored, and returned together. Equal arguments give equal records, whatever `jobs` is.

    Parameters
    ----------
    name_or_path
        A name from the catalogue (`bufferscope.catalogue()`), or the path of a TOML file.
    overrides
        Changes to keys of the file: a dict of values by path, or texts as for `--set` (`"link.wan.rate=2mbit"`).
    seed
        The first seed, a whole number from 0 on. Everything random in a run comes from its seed.
    repeat
        The number of runs of each point, with consecutive seeds. Default: as the file says.
    jobs
        The number of runs that are carried out at once. Default: one for each processor.
    out
        The directory under which the runs are stored.
    engine
        What carries the packets: `"sim"`, `"guest"` or `"host"`, or a list of several.
    kernel
        The kernel of the engine guest, as in `"6.12"`. Default: the one that `bufferscope guest build` takes.
    reuse
        Take a stored run if a new one would give the same records.
    capture
        The engines guest and host also store the packets that they carry, for `bufferscope export --format pcapng`.
    watcher
        An object whose methods `advanced` and `finished` are called while runs are carried out.
    cluster
        The address of a Dask scheduler (`"tcp://HOST:PORT"`) whose workers make the runs, or `"local:4"` for four
        workers on this machine. The runs are stored here either way.
    layout
        `"single"` stores each run in a directory of its own; `"sweep"` stores many runs of the simulator together,
        which takes less time and space if they are short; `"auto"` does so for at least 200 short runs.

    Returns
    -------
    Result
        The runs of all engines, points and seeds, in the order of the points.

    Raises
    ------
    ExperimentError
        The experiment does not exist, or its file has mistakes: one line of text for each.
    InputError
        Another argument is impossible, or `out` can't be written.
    EngineError
        An engine is not available here, or failed.

    Examples
    --------
    >>> import bufferscope as bs
    >>> result = bs.run("ucas-reproduce", {"link.bottleneck.rate": "2mbit"}, repeat=3)          # doctest: +SKIP
    """
    experiment = load_experiment(name_or_path, overrides)
    chosen = engines(engine, kernel=kernel, capture=capture)
    tasks = plan(experiment, chosen, Path(out), seed=seed, repeat=repeat, reuse=reuse)
    return Result(execute(tasks, jobs=jobs, watcher=watcher, cluster=cluster, layout=layout))


@checked(**_OF_RUNS, engine=NAME, link=optional(NAME), point=STRINGS)
def choose(
    name_or_path: str | PathLike[str],
    overrides: Overrides = (),
    *,
    link: str | None = None,
    point: Sequence[str] = (),
    seed: int = 1,
    repeat: int = 3,
    jobs: int | None = None,
    out: str | PathLike[str] = "results",
    engine: EngineName = "sim",
    kernel: str | None = None,
    reuse: bool = False,
    watcher: Watcher | None = None,
    cluster: str | None = None,
) -> "Choice":
    """Run an experiment with every queueing discipline at its bottleneck, and say which one to take and why.

    Tail drop is tried in a few sizes.

    Parameters
    ----------
    name_or_path
        A name from the catalogue, or the path of a TOML file.
    overrides
        Changes to keys of the file, as for `run`.
    link
        The link and direction whose queue is chosen, as in `"wan"` or `"wan.reverse"`. Default: the port with the
        smallest rate on the path of the data.
    point
        Values of swept keys, as in `["traffic.rival.flows=1"]`. Default: the first of each.
    seed
        The first seed, a whole number from 0 on. Everything random in a run comes from its seed.
    repeat
        The number of runs of each point, with consecutive seeds.
    jobs
        The number of runs that are carried out at once. Default: one for each processor.
    out
        The directory under which the runs are stored.
    engine
        What carries the packets: `"sim"`, `"guest"` or `"host"`.
    kernel
        The kernel of the engine guest, as for `run`.
    reuse
        Take a stored run if a new one would give the same records.
    watcher
        Informed of progress, as for `run`.
    cluster
        The address of a Dask scheduler, as for `run`.

    Returns
    -------
    Choice
        Every queue that was tried with what it did, and the one to take.

    Raises
    ------
    ExperimentError
        The experiment does not exist, or its file has mistakes.
    InputError
        Nothing queues at the link, or another argument is impossible.
    EngineError
        The engine is not available here, or failed.

    Examples
    --------
    >>> choice = bs.choose("my-home.toml", repeat=5)                                            # doctest: +SKIP
    >>> choice.best.name, choice.command                                                        # doctest: +SKIP
    """
    from bufferscope.studies.choice import Choice, plan_study

    chosen = one_engine(engine, kernel)
    experiment = load_experiment(name_or_path, overrides)
    study = plan_study(experiment, experiment.having(point)[0], chosen, link)
    tasks = plan(study.experiment, [chosen], Path(out), seed=seed, repeat=repeat, reuse=reuse)
    runs = execute(tasks, jobs=jobs, watcher=watcher, cluster=cluster, layout="single")
    return Choice(study, Result(runs))


@checked(path=PATH, overrides=optional(OVERRIDES), newest=FLAG)
def load(path: str | PathLike[str], overrides: Overrides | None = None, *, newest: bool = False) -> Result:
    """Load stored runs.

    Runs with different overrides are loaded together, and so are runs of several engines; figures distinguish them by
    what differs (`Result.varying`).

    Parameters
    ----------
    path
        The directory of one run, or that of all runs of an experiment, as in `results/ucas-reproduce`.
    overrides
        Only the runs that were made with exactly these overrides; `[]` selects those of the file without changes.
        Default: all.
    newest
        Only the runs of the same variant as the newest run.

    Returns
    -------
    Result
        The runs, in the order of the experiment's points.

    Raises
    ------
    StoreError
        There is no run at this path or with these overrides, or a run is incomplete or damaged.
    InputError
        An argument has the wrong type.

    Examples
    --------
    >>> bs.load("results/ucas-reproduce", overrides=["link.bottleneck.queue.limit=20p"])        # doctest: +SKIP
    """
    return Result(find(Path(path), None if overrides is None else as_texts(overrides), newest=newest))


@checked(
    host=NAME,
    token=optional(NAME),
    phases=STRINGS,
    idle=FLAG,
    congestion=optional(NAME),
    interface=optional(NAME),
    insecure=FLAG,
    fingerprint=optional(NAME),
    draft=optional(NAME),
    out=PATH,
)
def measure(
    host: str,
    *,
    token: str | None = None,
    phases: Sequence[Literal["idle", "download", "upload", "both"]] = (),
    idle: bool = False,
    flows: int | None = None,
    congestion: str | None = None,
    interface: str | None = None,
    at_most_s: int | None = None,
    kernel_send_buffer: bool = False,
    flood: bool = False,
    insecure: bool = False,
    fingerprint: str | None = None,
    draft: Literal["09"] | None = None,
    out: str | PathLike[str] = "results",
) -> "Run":
    """Measure this machine's connection to a server on which `bufferscope serve` runs, or to the server of a URL.

    The test takes a minute or two, and transfers as much as the connection carries in that time. Ctrl-C ends it early:
    the run then has what was measured until then.

    Parameters
    ----------
    host
        The server: a name or an address, and a port if it is another one, as in `"example.org:47300"`. Or the URL of
        a server that is not one of bufferscope: `"https://example.org"` for responsiveness, `"ndt7://example.org"` for
        ndt7.
    token
        What the server printed. Default: the environment variable `BUFFERSCOPE_TOKEN`. A URL needs none.
    phases
        Only these phases: `"idle"`, `"download"`, `"upload"`, `"both"`. Default: all.
    idle
        Only the idle path, without any load.
    flows
        The connections of the load in each direction. Default: as many as the program takes.
    congestion
        The congestion control of the load. Default: that of the program.
    interface
        The interface to measure. Default: that of the route to the server.
    at_most_s
        The longest that each phase may last, in seconds. Default: that of the program.
    kernel_send_buffer
        Let the load's send buffers grow as the kernel likes, as for most programs.
    flood
        After the load, send a flood of UDP packets in each direction, at twice the goodput for 5 s at most, to see the
        worst case of the buffers. The server must accept it (`serve --accept-flood`).
    insecure
        With a URL: trust any certificate.
    fingerprint
        With a URL: trust the certificate with this SHA-256 (64 hexadecimal digits).
    draft
        With `https://`: `"09"` takes the intervals of that version of the draft, 5 s instead of 1 s.
    out
        The directory under which the run is stored.

    Returns
    -------
    Run
        The stored run; the verdict is in `run.meta["summary"]["live"]`.

    Raises
    ------
    InputError
        An argument is impossible, or `out` can't be written.
    EngineError
        The measurement failed without a result.

    Examples
    --------
    >>> run = bs.measure("example.org", token="...")                                            # doctest: +SKIP
    >>> run.meta["summary"]["live"]["verdict"]["sentences"]                                     # doctest: +SKIP
    """
    from bufferscope.engines.live.program import TOKEN, Request
    from bufferscope.interop.live.measuring import measure as measured

    given = os.environ.get(TOKEN, "") if token is None else token
    request = Request(
        host,
        given,
        tuple(phases),
        idle,
        flows,
        congestion,
        interface,
        at_most_s,
        kernel_send_buffer=kernel_send_buffer,
        flood=flood,
        insecure=insecure,
        fingerprint=fingerprint,
        draft=draft,
    )
    return measured(request, Path(out)).run


@checked(measurements=PATHS, down_mbit=optional(NUMBER), up_mbit=optional(NUMBER), loaded=optional(NAME), out=PATH)
def model_line(
    *measurements: str | PathLike[str],
    down_mbit: float | None = None,
    up_mbit: float | None = None,
    loaded: "PhaseKind | None" = None,
    seed: int = 1,
    out: str | PathLike[str] = "results",
) -> "LineFit":
    """Fit an experiment to measurements of one line, as `bufferscope model` does.

    Parameters
    ----------
    *measurements
        Live measurements, or directories of them, of which the newest is taken; other runs; captures of packets; data
        files of Flent; or what `bufferscope import` reads. Default: the newest live measurement in `results`.
    down_mbit
        The download rate of the line in Mbit/s, for a file with round trips only.
    up_mbit
        The upload rate of the line in Mbit/s, for a file with round trips only.
    loaded
        What was loaded while such a file was measured. Default: the direction with a rate, if there is only one.
    seed
        The seed of the simulations, a whole number from 0 on.
    out
        The directory under which files are stored as runs.

    Returns
    -------
    LineFit
        The model, and each phase of the test, measured and modelled.

    Raises
    ------
    InputError
        A measurement has too little for a model, or an argument is impossible.
    StoreError
        There is no measurement at a path, or a run is damaged.

    Examples
    --------
    >>> fitted = bs.model_line("results/example.org")                                           # doctest: +SKIP
    >>> fitted.fits, fitted.model.queues["up"].rate_bps                                         # doctest: +SKIP
    """
    from bufferscope.interop.measured_lines import measured_line
    from bufferscope.studies.modelling.fitting import fit
    from bufferscope.studies.modelling.others import given_rates

    paths = [Path(each) for each in measurements] or [Path("results")]
    line, _ = measured_line(paths, Path(out), given_rates(down_mbit, up_mbit, loaded))
    return fit(line, seed)


@checked(
    run=PATH, device=optional(NAME), link=NAME, interface=optional(NAME), qdisc=optional(NAME), margin=optional(NUMBER)
)
def fix(
    run: str | PathLike[str] = "results",
    *,
    device: str | None = None,
    link: str = "unknown",
    interface: str | None = None,
    qdisc: str | None = None,
    margin: float | None = None,
) -> "Advice":
    """Say what removes the queue that a live measurement found: what to type, where, and why.

    Nothing is changed; `bufferscope fix --apply` tries a cure, and undoes it.

    Parameters
    ----------
    run
        A live measurement, or a directory of them, of which the newest is taken.
    device
        What to set: `"linux"`, `"openwrt"`, `"opnsense"`, `"pfsense"`, `"mikrotik"`, `"this-machine"` or `"provider"`.
        Default: the device that has the queue; for a router, `"openwrt"`.
    link
        The kind of the line, for the headers that it adds to each packet, as for `--link`.
    interface
        The interface to set. Default: `wan` of a router; of this machine, that of the route to the server.
    qdisc
        `"cake"`, `"fq_codel"` or `"bfifo"`. Default: `"cake"`; on this machine, the best that its kernel has.
    margin
        The share of the measured rate that a shaper leaves unused, from 0 to 0.5. Default: 0.05 for uploads, 0.1 for
        downloads.

    Returns
    -------
    Advice
        The queues, the rates of shapers, and the steps; or the reasons why there are none.

    Raises
    ------
    InputError
        The run is no live measurement, or an argument is impossible.
    StoreError
        There is no live measurement at this path, or it is damaged.

    Examples
    --------
    >>> advice = bs.fix("results/example.org", device="linux", link="docsis")                   # doctest: +SKIP
    >>> [step.lines for step in advice.steps], advice.reasons                                   # doctest: +SKIP
    """
    from bufferscope.analysis.fixing.advising import advise, machine_of
    from bufferscope.engines.local.facts import checked as checked_name
    from bufferscope.store.finding import newest_live

    if interface:
        checked_name(interface)
    found = newest_live(Path(run))
    if margin is not None and not 0 <= margin <= 0.5:
        raise InputError(f"margin: found {margin:g}; allowed: 0 to 0.5")
    machine = machine_of(found, device, interface)
    return advise(found, device, link, interface, qdisc, machine, margin=margin)


@checked(labels=optional(STRINGS), baseline=optional(NAME))
def compare(
    *what: "What | Mapping[str, What]", labels: Sequence[str] | None = None, baseline: str | None = None
) -> "Comparison":
    """Compare runs with one another, metric by metric.

    Runs are grouped into arms by what differs among them, and points with the same swept values are compared.

    Parameters
    ----------
    *what
        Results, runs, or paths and patterns of stored runs and their directories; or one mapping of names to these.
    labels
        The names of the arms, one for each of `what`. Default: made from what differs.
    baseline
        The name of the arm that all others are compared with. Default: the first one.

    Returns
    -------
    Comparison
        The arms, the points that they have in common, and the differences with their 95 % confidence intervals.

    Raises
    ------
    InputError
        There is nothing to compare, or no arm is called `baseline`.
    StoreError
        A path holds no complete run.

    Examples
    --------
    >>> bs.compare("results/ucas-reproduce")                                                    # doctest: +SKIP
    >>> bs.compare({"tail drop": bloated, "CoDel": cured}).table                                # doctest: +SKIP
    """
    from bufferscope.studies.comparison.comparing import Comparison
    from bufferscope.studies.comparison.inputs import all_of

    return Comparison(all_of(what, labels), baseline)
