"""Carrying out tasks on a cluster.

The scheduler gets only a few more jobs than its workers can begin, so that the scheduler and the workers never hold
more than a small part of a large sweep. A job may go to any worker that said it can run it. If the worker is lost, the
scheduler gives the job to another one of these.
"""

import logging
import secrets
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures import Future as Arrival
from dataclasses import dataclass
from typing import Any

from distributed import Client, Future

from bufferscope.base.errors import EngineError, InputError, StoreError, printable
from bufferscope.running.cluster import worker
from bufferscope.running.cluster.words import named, one_line
from bufferscope.running.cluster.workers import Workers
from bufferscope.running.executors import Ended, Watcher, refuse
from bufferscope.running.job import Task
from bufferscope.store import ingest as arriving
from bufferscope.store.reuse import stored
from bufferscope.store.run import Run

JOBS_PER_THREAD = 3
"""The number of jobs that the scheduler gets for each thread of its workers."""
HANDS = 2
"""The number of runs that are fetched and stored at the same time."""
POLL_S = 0.02
LOOK_S = 1.0
"""How often the scheduler is asked which workers there are."""
PATIENCE_S = 60.0
"""How long jobs wait for a worker after the last worker that could run them was lost."""
SCHEDULER_LOST = "the scheduler was lost"

_log = logging.getLogger(__name__)


class Dask:
    """Carries out tasks on the workers of a client's scheduler."""

    def __init__(self, client: Client) -> None:
        """Use this client; no worker is asked yet."""
        self._client = client
        self._workers: Workers | None = None

    def check(self, tasks: Sequence[Task]) -> None:
        """Ask the workers which tasks they can carry out.

        Raises `InputError` for an engine in real time. Raises `EngineError`, which names the worker, if a worker has
        another build, or if no worker can carry out a task.
        """
        for task in tasks:
            if task.engine.real_time:
                raise InputError(f"--cluster: engine {task.engine.name} runs in real time and only on this machine")
        workers = Workers(self._client, tasks)
        problems = workers.ask(self._client.nthreads())
        if problems:
            more = f" (and {len(problems) - 1} more workers)" if len(problems) > 1 else ""
            raise EngineError(f"{problems[0]}{more}")
        unable = {(task.experiment, task.engine, task.position): task for task in tasks if not workers.able(task)}
        refuse([(task, workers.why_not(task)) for task in unable.values()], tasks)
        self._workers = workers

    def carry_out(self, tasks: Sequence[Task], watcher: Watcher, ended: Ended) -> None:
        """Carry out the tasks; Ctrl-C stops the running ones, and runs that have arrived stay stored."""
        assert self._workers is not None, "check comes first"
        _Sweep(self._client, self._workers, tasks, watcher, ended).carry_out()


@dataclass
class _Attempt:
    """A job that was submitted to the scheduler."""

    future: Future
    able: frozenset[str]
    """The workers that may get the job."""
    arrival: "Arrival[Run | Exception] | None" = None
    """The job's run, or the error, while it is fetched and stored."""


class _Sweep:
    """The progress of the tasks of one call."""

    def __init__(self, client: Client, workers: Workers, tasks: Sequence[Task], watcher: Watcher, ended: Ended) -> None:
        self._client = client
        self._workers = workers
        self._tasks = tasks
        self._watcher = watcher
        self._ended = ended
        self._name = f"bufferscope-{secrets.token_hex(8)}"
        """Distinguishes these jobs and their messages from others on the same scheduler."""
        self._waiting = deque(range(len(tasks)))
        self._under_way: dict[int, _Attempt] = {}
        self._attempts = 0
        self._threads: dict[str, int] = {}
        """The number of threads of every connected worker."""
        self._looked_s = -LOOK_S
        self._active_s = time.monotonic()
        """When a job was last under way."""

    def carry_out(self) -> None:
        self._client.subscribe_topic(worker.PROGRESS_TOPIC, self._advanced)
        with ThreadPoolExecutor(HANDS, thread_name_prefix="arrival") as hands:
            try:
                while (self._waiting or self._under_way) and self._client.status == "running":
                    self._look()
                    self._fetch(hands)
                    if self._land():
                        self._hand_over()
                    else:
                        time.sleep(POLL_S)
            finally:
                if self._client.status == "running":
                    self._client.cancel([attempt.future for attempt in self._under_way.values()])
                hands.shutdown()
                self._land()
        self._give_up(SCHEDULER_LOST)

    def _look(self) -> None:
        """From time to time, look which workers are connected, ask new ones, and submit jobs."""
        now_s = time.monotonic()
        if now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        try:
            self._threads = self._client.nthreads()
            for problem in self._workers.ask(self._threads):
                _log.warning("gets no job: %s", problem)
        except OSError:  # the scheduler is being lost
            return
        for number, attempt in list(self._under_way.items()):
            if attempt.arrival is None and attempt.able.isdisjoint(self._threads):
                self._client.cancel([self._under_way.pop(number).future])
                self._waiting.appendleft(number)
        self._hand_over()
        if self._under_way:
            self._active_s = now_s
        elif now_s - self._active_s > PATIENCE_S:
            self._give_up("its worker was lost, and no other that could run it came")

    def _give_up(self, why: str) -> None:
        """End all remaining tasks with an error: no more runs will arrive."""
        for number in (*self._under_way, *self._waiting):
            self._ended[self._tasks[number]] = EngineError(why)
        self._under_way.clear()
        self._waiting.clear()

    def _hand_over(self) -> None:
        """Submit jobs until the scheduler has enough."""
        stuck = []
        while self._waiting and len(self._under_way) < JOBS_PER_THREAD * sum(self._threads.values()):
            number = self._waiting.popleft()
            if not self._begin(number):
                stuck.append(number)
        self._waiting.extendleft(reversed(stuck))

    def _begin(self, number: int) -> bool:
        """Reuse a task's stored run, or submit its job; False if no worker can take the job now."""
        task = self._tasks[number]
        identity = self._workers.identity(task)
        if task.reuse and (run := stored(task.directory, identity, task.point.scenario, task.about())):
            self._watcher.finished(task)
            self._ended[task] = run
            return True
        able = self._workers.able(task)
        if able.isdisjoint(self._threads):
            return False
        self._attempts += 1
        future = self._client.submit(
            worker.work,
            task.job,
            self._name,
            number,
            key=f"{self._name}-{self._attempts}",
            workers=sorted(able),
            pure=False,
        )
        self._under_way[number] = _Attempt(future, able)
        return True

    def _fetch(self, hands: ThreadPoolExecutor) -> None:
        """Begin to fetch the runs of finished jobs."""
        for number, attempt in self._under_way.items():
            if attempt.arrival is None and attempt.future.done():
                attempt.arrival = hands.submit(self._arrive, self._tasks[number], attempt.future)

    def _land(self) -> bool:
        """Record the runs that have arrived; returns whether there were any."""
        landed = [number for number, attempt in self._under_way.items() if attempt.arrival and attempt.arrival.done()]
        for number in landed:
            arrival = self._under_way.pop(number).arrival
            assert arrival is not None
            task, outcome = self._tasks[number], arrival.result()
            self._ended[task] = outcome
            if isinstance(outcome, Run):
                self._watcher.finished(task)
        return bool(landed)

    def _arrive(self, task: Task, future: Future) -> Run | Exception:
        """Fetch a run and store it; returns the run, or the error that prevented it."""
        try:
            parcel = future.result()
        except CancelledError:
            return EngineError("the scheduler was lost, or the job was cancelled there")
        except OSError:  # the connection broke while the run was fetched; a job returns its own errors as text
            return EngineError(SCHEDULER_LOST)
        except Exception as error:  # any error on the worker
            return EngineError(f"a worker: {one_line(error)}")
        try:
            return self._stored(task, parcel)
        except (EngineError, StoreError) as error:
            holders = [address for held in self._client.who_has([future]).values() for address in held]
            return EngineError(f"{named(holders[0]) if holders else 'a worker'}: {error}")
        except OSError as error:
            return error

    def _stored(self, task: Task, parcel: Any) -> Run:
        """Store the run in a parcel; raises `EngineError` if its worker failed, `StoreError` if the run is damaged."""
        if not isinstance(parcel, dict):
            raise StoreError(f"sent {type(parcel).__name__} instead of a run")
        if "error" in parcel:
            raise EngineError(printable(str(parcel["error"]))[:2000])
        arriving.store(task.directory, parcel.get("files"), task.foreseen(self._workers.identity(task)))
        return Run(task.directory)

    def _advanced(self, event: tuple[float, object]) -> None:
        """Pass on a worker's message about the progress of a run."""
        message = event[1]
        if isinstance(message, dict) and message.get("sweep") == self._name:
            number, now_ns = message.get("number"), message.get("now_ns")
            if isinstance(number, int) and isinstance(now_ns, int) and number in self._under_way and now_ns >= 0:
                self._watcher.advanced(self._tasks[number], now_ns)
