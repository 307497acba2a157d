"""A home whose queue is chosen, and measurements of its candidates."""

from pathlib import Path

from laboratory import write

from bufferscope.engines import one_engine
from bufferscope.model.experiment import load
from bufferscope.stats.estimate import estimate
from bufferscope.studies.choice import Study, plan_study
from bufferscope.studies.choice.candidates import QueueCandidate
from bufferscope.studies.choice.judging import MeasuredCandidate

HOME = """\
title = "A home"
duration = "2s"
[[link]]
name = "core"
ends = ["internet", "isp"]
rate = "1gbit"
delay = "10ms"
[[link]]
name = "wan"
ends = ["isp", "home"]
delay = "5ms"
forward.rate = "20mbit"
reverse.rate = "5mbit"
[[link]]
name = "spare"
ends = ["isp", "shed"]
[[traffic]]
name = "download"
kind = "tcp"
from = "internet"
to = "home"
[[traffic]]
name = "upload"
kind = "tcp"
from = "home"
to = "internet"
"""


def measured(
    name: str,
    mbit: float,
    ms: float,
    mos: float | None = None,
    scatter: float = 0.0,
    limit: int | None = None,
    n: int = 3,
) -> MeasuredCandidate:
    """A candidate; its repetitions scatter by this share. With a limit it is a size of tail drop."""

    def values(mean: float) -> list[float]:
        return [mean * (1 + scatter * (index - (n - 1) / 2)) for index in range(n)]

    queue = {"qdisc": name} if limit is None else {"qdisc": "pfifo", "limit": f"{limit}p"}
    candidate = QueueCandidate(name, queue, is_size=limit is not None)
    call = None if mos is None else estimate(values(mos))
    return MeasuredCandidate(candidate, name, estimate(values(mbit)), estimate(values(ms)), estimate(values(ms)), call)


def study_of(tmp_path: Path, text: str, *overrides: str, position: int = 0) -> Study:
    experiment = load(write(tmp_path, text), overrides)
    return plan_study(experiment, experiment.points[position], one_engine("sim"))
