"""The functions that run on a cluster's workers: they report the build and what can run there, and carry out jobs.

They return errors as text: the client may lack the type of an exception and then can't unpickle it, and Dask does not
report which worker raised an exception.
"""

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, final

from distributed import Status, get_worker

from bufferscope import _core
from bufferscope.base.build import fingerprint
from bufferscope.base.errors import EngineError
from bufferscope.engines import engines
from bufferscope.running.cluster.question import Question
from bufferscope.running.cluster.words import one_line
from bufferscope.running.job import Job, perform
from bufferscope.store.ingest import packed

PROGRESS_TOPIC = "bufferscope-progress"
PROGRESS_INTERVAL_S = 0.5
"""How often a job reports its progress."""


_ENDING = (Status.closing, Status.closed, Status.failed)


def build() -> dict[str, str]:
    """The worker's build of bufferscope: `version` and `fingerprint`."""
    return {"version": _core.__version__, "fingerprint": fingerprint()}


@final
class EngineAvailability(TypedDict):
    """What a worker says of an engine that it has."""

    identity: str | None
    refusals: list[str | None]
    """For each point, why it can't run; None if it can."""


@final
class Unable(TypedDict):
    """Why no point can run on a worker."""

    unable: str


async def answers(questions: Sequence[Question]) -> list[EngineAvailability | Unable]:
    """The answer to each question. A thread finds the answers, so that the worker can still talk to its scheduler."""
    return await asyncio.to_thread(lambda: [_answer(question) for question in questions])


def _answer(question: Question) -> EngineAvailability | Unable:
    try:
        (engine,) = engines(question.engine, kernel=question.kernel)
        engine.examine()
        identity = engine.identity()
        return {"identity": identity, "refusals": engine.refusals(question.source.experiment().points)}
    except (EngineError, OSError) as error:
        return {"unable": str(error)}
    except BaseException as error:
        return {"unable": one_line(error)}


def work(job: Job, sweep: str, number: int) -> dict[str, object]:
    """Carry out a job and return its `files`, as content by name; after a failure, return only `error`, the reason.

    Progress is reported as events of `PROGRESS_TOPIC`: `sweep`, `number` and the simulated time `now_ns`. The job stops
    when its run is no longer wanted: after Ctrl-C, and when the scheduler or the client is gone.
    """
    worker = get_worker()
    key = worker.get_current_task()
    told_s = time.monotonic()

    def progress(now_ns: int, _duration_ns: int) -> bool:
        nonlocal told_s
        if time.monotonic() - told_s >= PROGRESS_INTERVAL_S:
            told_s = time.monotonic()
            worker.log_event(PROGRESS_TOPIC, {"sweep": sweep, "number": number, "now_ns": now_ns})
        known = worker.state.tasks.get(key)
        return known is not None and known.state != "cancelled" and worker.status not in _ENDING

    # In the worker's own directory: the next worker removes what a killed worker leaves there.
    with tempfile.TemporaryDirectory(dir=worker.local_directory) as scratch:
        directory = Path(scratch)
        try:
            task = job.task(directory)
            perform(task, task.engine.identity(), directory, progress)
            return {"files": packed(directory)}
        except (EngineError, OSError) as error:
            return {"error": str(error)}
        except _core.Interrupted:
            return {"error": "stopped"}
        except BaseException as error:  # a panic of the extension module is no Exception
            return {"error": one_line(error)}
