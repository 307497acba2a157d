"""Try cures on the simulator: the run's own experiment and seed, with one change at a time.

The unchanged run is simulated, too, so that all are compared on the same engine, over the same time: from the warm-up
on. Nothing is stored.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bufferscope.analysis.explanation import fmt
from bufferscope.analysis.explanation.datapath import along_data
from bufferscope.analysis.explanation.diagnosis import diagnose
from bufferscope.analysis.explanation.effects import mos
from bufferscope.analysis.explanation.evidence import Evidence, evidence
from bufferscope.analysis.explanation.remedies import Remedy, remedies
from bufferscope.analysis.explanation.statement import Number, Statement
from bufferscope.base.errors import EngineError, ExperimentError, InputError
from bufferscope.engines import engine_of
from bufferscope.metrics.records import RunRecords
from bufferscope.model.experiment import Experiment, load
from bufferscope.model.network import path, traffic_ends
from bufferscope.model.overrides import toml
from bufferscope.model.variants import ABOUT, PING, unused_name
from bufferscope.running.stepping import Simulation
from bufferscope.store.live import live_of

AS_IT_WAS = Remedy("as it was", {})
ALIKE = 0.02
"""A goodput that differs by less is called the same."""
MUCH_LESS = 0.9
"""Traffic that keeps less of its goodput is named, even if all traffic together gets more."""
Step = Callable[[int, int], None]
"""Called with the number of simulations that are done, and of all."""


@dataclass(frozen=True)
class CureResult:
    """What a simulation gave."""

    rtt_p50_ms: float | None
    """The median round trip of the pings; None if more than half were lost."""
    rtt_p95_ms: float | None
    goodput_bps: float
    """Of all flows that last."""
    by_traffic: Mapping[str, float]
    """The goodput of each entry of the traffic whose flows last."""
    call_mos: float | None


class NotSimulatedError(Exception):
    """The run's experiment cannot be simulated again; the text says why."""


def cures(run: RunRecords, step: Step = lambda _done, _total: None) -> Iterator[Statement]:
    """The effect of each cure, one statement each; if nothing can be simulated, one that says why."""
    if live_of(run.meta["summary"]):
        return  # its verdict says what to do
    found = evidence(run)
    if engine_of(run.engine).observes:
        yield Statement("cure", "Cures cannot be simulated: the run was observed, so its network is not known.")
        return
    wanted = list(remedies(found, diagnose(found)))
    if not wanted:
        return
    try:
        file = _File.of(run)
        before = file.tried(AS_IT_WAS)
    except NotSimulatedError as error:
        yield Statement("cure", f"Cures cannot be simulated: {error}.", unknown="Their effect is not known.")
        return
    for done, remedy in enumerate(wanted, start=1):
        step(done, len(wanted) + 1)
        try:
            if file.is_changed_by(remedy):
                yield _statement(remedy, before, file.tried(remedy))
        except NotSimulatedError as error:
            yield Statement("cure", f"With {remedy.name}: not simulated, {error}.")
    step(len(wanted) + 1, len(wanted) + 1)


@dataclass(frozen=True)
class _File:
    """The experiment of a run, with its swept values in place."""

    experiment: Experiment
    document: Mapping[str, Any]
    sweep: Mapping[str, dict[str, Any]]
    """One value for each swept key."""
    seed: int

    @classmethod
    def of(cls, run: RunRecords) -> "_File":
        meta = run.meta
        if "member" in meta:
            raise NotSimulatedError("it is a member of a population")
        try:
            experiment = load(meta["path"] or meta["experiment"], meta["overrides"])
            point = experiment.points[meta["position"]]
        except (ExperimentError, InputError, OSError, IndexError):
            raise NotSimulatedError("its experiment's file no longer exists") from None
        if point.scenario != run.scenario:
            raise NotSimulatedError("its experiment's file has changed since the run")
        try:
            file, sweep = tomllib.loads(experiment.text), experiment.values(point)
        except tomllib.TOMLDecodeError:
            raise NotSimulatedError("its file is not in TOML 1.0") from None
        document = {key: value for key, value in file.items() if key not in (*ABOUT, "record")}
        document["title"] = experiment.title
        if not along_data(evidence(run)) and run.scenario["traffic"]:
            document["traffic"] = [*document.get("traffic", []), _ping(run)]
        return cls(experiment, document, sweep, run.seed)

    def is_changed_by(self, remedy: Remedy) -> bool:
        """Whether these changes make a different experiment."""
        try:
            own, changed = (self._with(each).points[0].scenario for each in (AS_IT_WAS, remedy))
        except ExperimentError as error:
            raise NotSimulatedError(str(error).splitlines()[0]) from None
        return own != changed

    def tried(self, remedy: Remedy) -> CureResult:
        """Simulate the experiment with these changes."""
        try:
            run = Simulation(self._with(remedy), seed=self.seed).finish()
        except (ExperimentError, InputError, EngineError) as error:
            raise NotSimulatedError(str(error).splitlines()[0]) from None
        return _tried(evidence(run))

    def _with(self, remedy: Remedy) -> Experiment:
        sweep = {key: value for key, value in self.sweep.items() if not _overlap(key, remedy.changes)}
        document = {**self.document, **({"sweep": sweep} if sweep else {})}
        text = "".join(f"{toml(key)} = {toml(value)}\n" for key, value in document.items())
        name = self.experiment.path or self.experiment.name
        made = Experiment(self.experiment.name, text.encode(), name, self.experiment.settings, self.experiment.named)
        return made.with_overrides(remedy.changes)


def _overlap(key: str, changes: Mapping[str, object]) -> bool:
    """Whether a change sets what a swept key sets: for a queue, also that of both directions of its link."""
    for changed in changes:
        either = changed.replace(".forward.", ".").replace(".reverse.", ".")
        if any(f"{key}.".startswith(f"{path}.") or f"{path}.".startswith(f"{key}.") for path in (changed, either)):
            return True
    return False


def _ping(run: RunRecords) -> dict[str, object]:
    """A ping along the data, or else along the first traffic, for a run without one there."""
    lasting = [each.way.entry for each in evidence(run).senders]
    entry = (lasting or run.scenario["traffic"])[0]
    near, far = traffic_ends(run.scenario, entry)
    assert path(run.scenario, near, far)
    return {"name": unused_name(run.scenario, PING), "kind": "ping", "from": near, "to": far, "interval": "97ms"}


def _tried(found: Evidence) -> CureResult:
    asked = next(iter(along_data(found)), None)
    times = [asked.rows["rtt_ns"].fill_null(2**62).quantile(part, "higher") for part in (0.5, 0.95)] if asked else []
    median, tail = (None if time is None or time >= 2**62 else time / 1e6 for time in times or (None, None))
    goodput: dict[str, float] = {}
    for each in found.senders:
        name = each.way.entry["name"]
        goodput[name] = goodput.get(name, 0.0) + each.goodput_bps * each.seconds / found.window.seconds
    score = mos(asked)[0] if asked and median is not None else None
    return CureResult(median, tail, sum(goodput.values()), goodput, score)


def _statement(remedy: Remedy, before: CureResult, after: CureResult) -> Statement:
    numbers: dict[str, Number] = {"cure": remedy.name}
    for name in ("rtt_p50_ms", "rtt_p95_ms", "goodput_bps", "call_mos"):
        for when, tried in (("before", before), ("after", after)):
            value = getattr(tried, name)
            if value is not None:
                numbers[f"{when}_{name}"] = value
    parts = [_delay(before, after), _goodput(before, after), *_less(before, after), _call(before, after)]
    sentence = f"With {remedy.name}: {', '.join(part for part in parts if part)} (simulated)."
    return Statement("cure", sentence, numbers, None)


def _delay(before: CureResult, after: CureResult) -> str:
    if after.rtt_p50_ms is None or before.rtt_p50_ms is None:
        return "more than half of the pings are lost" if after.rtt_p50_ms is None else ""
    return f"a median RTT of {_ms(after.rtt_p50_ms)} instead of {_ms(before.rtt_p50_ms)}"


def _goodput(before: CureResult, after: CureResult) -> str:
    if not before.goodput_bps and not after.goodput_bps:
        return ""
    if abs(after.goodput_bps - before.goodput_bps) <= ALIKE * before.goodput_bps:
        return f"the same goodput ({fmt.rate(after.goodput_bps)})"
    return f"a goodput of {fmt.rate(after.goodput_bps)} instead of {fmt.rate(before.goodput_bps)}"


def _less(before: CureResult, after: CureResult) -> Iterator[str]:
    """The sources that get much less, if there are several."""
    for name, had in before.by_traffic.items():
        gets = after.by_traffic.get(name, 0.0)
        if len(before.by_traffic) > 1 and gets < MUCH_LESS * had:
            yield f"of which {name} gets {fmt.rate(gets)} instead of {fmt.rate(had)}"


def _call(before: CureResult, after: CureResult) -> str:
    if before.call_mos is None or after.call_mos is None:
        return ""
    return f"a call scores {after.call_mos:.2f} instead of {before.call_mos:.2f}"


def _ms(milliseconds: float) -> str:
    return fmt.time(milliseconds / 1e3)
