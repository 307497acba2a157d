"""The experiment that compares queues: the user's own, with a sweep over the candidates at one port."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bufferscope.base.errors import ExperimentError, InputError
from bufferscope.engines import Engine
from bufferscope.engines.availability import lacking
from bufferscope.model.experiment import Experiment, Point
from bufferscope.model.network import ports
from bufferscope.model.overrides import toml
from bufferscope.model.scenario import Scenario
from bufferscope.model.variants import ABOUT, PING, unused_name
from bufferscope.studies.choice.bottleneck import Bottleneck, find
from bufferscope.studies.choice.candidates import Queue, QueueCandidate, candidates, written
from bufferscope.studies.choice.command import arguments, bare

NEEDED = ("probes", "flows", "queues", "transfers", "capacity")
"""The tables from which queues are judged."""
OWN = "as in the file"


@dataclass(frozen=True)
class Study:
    """What is going to be run."""

    experiment: Experiment
    bottleneck: Bottleneck
    candidates: tuple[QueueCandidate, ...]
    """In the order of the experiment's points."""
    commands: tuple[str, ...]
    """Each candidate as arguments of `tc`; empty if Linux cannot be set to it."""
    notes: tuple[str, ...]


def plan_study(experiment: Experiment, point: Point, engine: Engine, link: str | None = None) -> Study:
    """The study for one point of an experiment. Raises `InputError` if there is no queue to choose."""
    bottleneck = find(point.scenario, link)
    _check(experiment.overrides, bottleneck)
    tried, notes = candidates(bottleneck)
    missing = lacking(engine, [candidate.name for candidate in tried if not candidate.is_size])
    notes += [f"{name} is not tried: {reason}" for name, reason in missing.items()]
    tried = [candidate for candidate in tried if candidate.name not in missing]
    try:
        file = tomllib.loads(experiment.text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{experiment.name}: choose takes files in TOML 1.0 only: {error}") from None
    document = {key: value for key, value in file.items() if key not in ABOUT}
    document |= {"title": f"Which queue for {bottleneck.port.name}? {experiment.title}", "figures": ["trade_offs"]}
    if "record" in document:
        document["record"] = list(dict.fromkeys([*document["record"], *NEEDED]))
    if added := _ping(point.scenario, bottleneck):
        document["traffic"] = [*document.get("traffic", []), added]
        bottleneck = replace(bottleneck, probers=(str(added["name"]),))
        notes.append(
            f"a ping from {bottleneck.sender} to {bottleneck.receiver} is added; the experiment has none across "
            f"{bottleneck.port.name}"
        )
    fixed = _fixed(experiment, point, bottleneck)
    own_queue = written(bottleneck.port.queue)
    own = QueueCandidate(OWN, own_queue, is_size=own_queue["qdisc"] == "pfifo", is_own=True)
    try:
        study = _study(experiment, document, fixed, bottleneck, [own, *tried], notes)
        if _queue(study.experiment.points[0], bottleneck) == bottleneck.port.queue:
            return _without_twins(study, experiment, document, fixed)
    except ExperimentError:  # its parameters cannot be written as keys
        if own.queue.get("qdisc") in ("pfifo", "codel"):
            raise
    study = _study(experiment, document, fixed, bottleneck, tried, notes)
    twins = [
        candidate
        for candidate, made in zip(tried, study.experiment.points, strict=True)
        if _queue(made, bottleneck) == bottleneck.port.queue
    ]
    if twins:
        tried = [replace(each, is_own=each is twins[0]) for each in tried]
    else:
        notes.append("the queue of the file is not among those tried: it cannot be written as one table")
    return _study(experiment, document, fixed, bottleneck, tried, notes)


def _queue(point: Point, bottleneck: Bottleneck) -> object:
    """The queue of the port in a point of the study."""
    return ports(point.scenario)[bottleneck.port.name].queue


def _without_twins(
    study: Study, experiment: Experiment, document: Mapping[str, Any], fixed: Mapping[str, Any]
) -> Study:
    """The study without the candidate that is the file's own queue: the own one keeps the other's name."""
    own, *others = study.candidates
    twins = [each for each, tc in zip(others, study.commands[1:], strict=True) if tc and tc == study.commands[0]]
    if not twins:
        name = _name(own, others)
        tried = [replace(own, name=name), *others]
    else:
        tried = [replace(each, is_own=each is twins[0]) for each in others]
    return _study(experiment, document, fixed, study.bottleneck, tried, study.notes)


def _name(own: QueueCandidate, others: Sequence[QueueCandidate]) -> str:
    """A name for the file's own queue that says what it is."""
    kind = str(own.queue["qdisc"])
    limit = str(own.queue.get("limit", "")).removesuffix("p").removesuffix("b") if kind in ("pfifo", "bfifo") else "own"
    name = f"{kind} {limit}".strip()
    return name if name not in [other.name for other in others] else OWN


def _study(
    experiment: Experiment,
    document: Mapping[str, Any],
    fixed: Mapping[str, Any],
    bottleneck: Bottleneck,
    tried: Sequence[QueueCandidate],
    notes: Sequence[str],
) -> Study:
    def varied(queues: Mapping[str, Queue]) -> Experiment:
        sweep = {**fixed, bottleneck.key: {name: dict(queue) for name, queue in queues.items()}}
        text = "".join(f"{toml(key)} = {toml(value)}\n" for key, value in {**document, "sweep": sweep}.items())
        name, file = f"{experiment.name}-choose"[:80], f"{experiment.name}, changed"
        return Experiment(name, text.encode(), file, experiment.overrides, experiment.named)

    made = varied({candidate.name: candidate.queue for candidate in tried})
    defaults = dict(zip(bare(), varied(bare()).points, strict=True))
    commands = tuple(
        arguments(point, bottleneck.port.name, candidate.queue, defaults)
        for point, candidate in zip(made.points, tried, strict=True)
    )
    return Study(made, bottleneck, tuple(tried), commands, tuple(notes))


def _check(overrides: Sequence[str], bottleneck: Bottleneck) -> None:
    """Refuse changes of what this command varies, or of what it cannot distinguish from the file."""
    for override in overrides:
        path = override.partition("=")[0].strip()
        if path == "sweep" or path.startswith("sweep."):
            raise InputError(
                f"--set {override}: choose varies only the queue; --point chooses one value of a swept key"
            )
        if path == bottleneck.key.rpartition(".")[0] or f"{path}.".startswith(f"{bottleneck.key}."):
            raise InputError(f"--set {override}: choose sets this queue itself")


def _ping(scenario: Scenario, bottleneck: Bottleneck) -> dict[str, object] | None:
    """A ping across the port; None if the experiment has one."""
    if bottleneck.probers:
        return None
    ends = {"from": bottleneck.sender, "to": bottleneck.receiver}
    return {"name": unused_name(scenario, PING), "kind": "ping", **ends, "interval": "100ms"}


def _fixed(experiment: Experiment, point: Point, bottleneck: Bottleneck) -> dict[str, dict[str, Any]]:
    """The swept keys with the point's values; without the keys of the queue that this command varies."""
    either = f"link.{bottleneck.port.link}.queue"
    return {
        path: value
        for path, value in experiment.values(point).items()
        if not any(f"{path}.".startswith(f"{key}.") for key in (bottleneck.key, either))
    }
