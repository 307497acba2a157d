"""The workers of a cluster: whether they have our build, and which tasks each can carry out."""

from collections.abc import Iterable, Sequence
from typing import Any, TypedDict, cast

from distributed import Client
from distributed.comm import CommClosedError

from bufferscope import _core
from bufferscope.base.build import fingerprint
from bufferscope.base.errors import printable
from bufferscope.running.cluster import worker
from bufferscope.running.cluster.question import Question
from bufferscope.running.cluster.words import named, one_line
from bufferscope.running.job import Task
from bufferscope.store.schema import Check, Mismatch


class _Build(TypedDict):
    """A worker's build of bufferscope."""

    version: str
    fingerprint: str


_BUILD = Check(_Build)
_AVAILABILITY, _UNABLE = Check(worker.EngineAvailability), Check(worker.Unable)


class Workers:
    """The workers that have been asked, and their answers."""

    def __init__(self, client: Client, tasks: Sequence[Task]) -> None:
        """Prepare the questions about these tasks; no worker is asked yet."""
        self._client = client
        self._questions = {question: task.experiment for task in tasks for question in [Question.about(task)]}
        self._able: dict[Question, set[str]] = {question: set() for question in self._questions}
        self._unable: dict[Question, dict[str, str]] = {question: {} for question in self._questions}
        self._refusals: dict[Question, dict[int, dict[str, str]]] = {question: {} for question in self._questions}
        self._identities: dict[tuple[str, str | None], tuple[str, str | None]] = {}
        """For every engine and kernel, the first worker that has it, and the engine's identity there."""
        self.asked: set[str] = set()

    def ask(self, addresses: Iterable[str]) -> list[str]:
        """Ask workers what they can run; returns the problems of some of them, which then get no jobs.

        Workers that disconnect meanwhile don't count as problems.
        """
        new = sorted(set(addresses) - self.asked)
        self.asked |= set(new)
        builds = self._client.run(worker.build, workers=new, on_error="return") if new else {}
        wrong = {address: _wrong_build(found) for address, found in builds.items() if not _is_gone(found)}
        problems = [f"{named(address)}: {problem}" for address, problem in wrong.items() if problem]
        alike = [address for address, problem in wrong.items() if not problem]
        questions = list(self._questions)
        told = self._client.run(worker.answers, questions, workers=alike, on_error="return") if alike else {}
        for address, answers in told.items():
            if not _is_gone(answers) and (problem := self._take(address, answers)):
                problems.append(f"{named(address)}: {problem}")
        return problems

    def able(self, task: Task) -> frozenset[str]:
        """The workers that can carry out a task."""
        question = Question.about(task)
        return frozenset(self._able[question] - self._refusals[question].get(task.position, {}).keys())

    def identity(self, task: Task) -> str | None:
        """The identity of a task's engine, which is the same on all workers that have it."""
        _, identity = self._identities[task.engine.name, task.engine.kernel]
        return identity

    def why_not(self, task: Task) -> str:
        """Why no worker can carry out a task: each reason once, with the first worker that reported it."""
        question = Question.about(task)
        told: dict[str, list[str]] = {}
        for address, reason in {**self._unable[question], **self._refusals[question].get(task.position, {})}.items():
            told.setdefault(reason, []).append(address)
        return "; ".join(f"{_first(addresses)}: {printable(reason)}" for reason, addresses in told.items())

    def _take(self, address: str, answers: object) -> str | None:
        """Remember a worker's answers; returns what is wrong with them."""
        if isinstance(answers, Exception):
            return one_line(answers)
        try:
            listed = _list(answers, len(self._questions), "answers")
            for (question, experiment), answer in zip(self._questions.items(), listed, strict=True):
                _check_answer(answer, len(experiment.points))
                if problem := self._note(address, question, answer):
                    return problem
        except Mismatch as mismatch:
            return f"not a worker of bufferscope: {mismatch}"
        return None

    def _note(self, address: str, question: Question, answer: worker.EngineAvailability | worker.Unable) -> str | None:
        if "unable" in answer:
            self._unable[question][address] = answer["unable"]
            return None
        engine = (question.engine, question.kernel)
        first, identity = self._identities.setdefault(engine, (address, answer["identity"]))
        if identity != answer["identity"]:
            return (
                f"engine {question.engine} would give other records than on {first}, because its kernel, its emulator "
                "or its agent is another: install the same on all workers"
            )
        self._able[question].add(address)
        for position, reason in enumerate(answer["refusals"]):
            if reason is not None:
                self._refusals[question].setdefault(position, {})[address] = reason
        return None


def _first(addresses: Sequence[str]) -> str:
    return named(addresses[0]) + (f" (and {len(addresses) - 1} more)" if len(addresses) > 1 else "")


def _check_answer(answer: object, points: int) -> None:
    """Raise `Mismatch` if this is not a valid answer."""
    if isinstance(answer, dict) and "unable" in answer:
        _UNABLE(answer, "answer")
    else:
        _AVAILABILITY(answer, "answer")
        _list(cast(worker.EngineAvailability, answer)["refusals"], points, "answer.refusals")


def _list(found: object, length: int, where: str) -> list[Any]:
    """A value that must be a list of this length; raises `Mismatch`."""
    if not isinstance(found, list) or len(found) != length:
        raise Mismatch(where, found, f"a list of {length}")
    return found


def _wrong_build(found: object) -> str | None:
    """What is wrong with the build of a worker that gave this answer; None if it is ours."""
    if isinstance(found, Exception):
        return f"this build of bufferscope is not installed there ({one_line(found)}): install the package that is here"
    ours = worker.build()
    try:
        _BUILD(found, "build")
    except Mismatch as mismatch:
        return f"not a worker of bufferscope: {mismatch}"
    if found == ours:
        return None
    assert isinstance(found, dict)
    return (
        f"found bufferscope {printable(found['version'])}, build {printable(found['fingerprint'])}; "
        f"expected {_core.__version__}, build {fingerprint()}, as here: install the same package on both"
    )


def _is_gone(answer: object) -> bool:
    """Whether there is no answer because the worker is gone."""
    return isinstance(answer, CommClosedError | ConnectionError | TimeoutError) or type(answer) is OSError
