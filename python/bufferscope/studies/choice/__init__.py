"""Choose a queue: run an experiment with every discipline at its bottleneck, and say which one to take and why."""

from bufferscope.studies.choice.judging import Choice, MeasuredCandidate
from bufferscope.studies.choice.study import Study, plan_study

__all__ = ["Choice", "MeasuredCandidate", "Study", "plan_study"]
