"""The questions that a worker has to answer before it gets jobs."""

from dataclasses import dataclass

from bufferscope.running.job import ExperimentSource, Task


@dataclass(frozen=True)
class Question:
    """Asks whether the points of an experiment can run on an engine."""

    source: ExperimentSource
    engine: str
    kernel: str | None

    @classmethod
    def about(cls, task: Task) -> "Question":
        """The question that tells whether a worker can carry out a task."""
        return cls(ExperimentSource.of(task.experiment), task.engine.name, task.engine.kernel)
