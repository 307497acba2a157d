"""Runs on the workers of a real cluster give the same bytes as local runs, whatever happens to a worker."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import requires
from pathlib import Path
from typing import Any, Literal

import pytest
from clusters import PATIENCE_S, Cluster, cluster, wait_until
from distributed import Future
from distributed.comm import CommClosedError
from guests import build_guest
from laboratory import ENDLESS, SMALL, SWEEP, TABLES, Answer, files, program, start, write

import bufferscope as bs
from bufferscope.running.job import Task
from bufferscope.running.plan import RunsFailedError

Cli = Callable[..., Answer]

NAMES = [*(f"{table}.parquet" for table in TABLES), "run.json"]

TIMINGS = ("started", "wall_s", "cpu_s")
"""The keys of `run.json` that differ between runs; on another machine, `machine` differs, too."""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler with two workers."""
    with cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def contents(out: Path) -> dict[str, object]:
    """Every file of some runs: tables as bytes, `run.json` without its timings and with its keys in order."""
    return {path: _settled(content) if path.endswith("run.json") else content for path, content in files(out).items()}


def _settled(content: bytes) -> str:
    found = json.loads(content)
    assert set(TIMINGS) < set(found)
    if "guest" in found["summary"]:
        assert found["summary"]["guest"].pop("cpu_s") > 0
    return json.dumps({key: value for key, value in found.items() if key not in TIMINGS})


def test_the_runs_are_the_same_bytes_as_here(there: Cluster, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL + SWEEP)
    here = bs.run(lab, ["duration=3s"], seed=3, repeat=2, out=tmp_path / "here")
    away = bs.run(lab, ["duration=3s"], seed=3, repeat=2, out=tmp_path / "away", cluster=there.address)
    assert [run.id for run in away.runs] == [run.id for run in here.runs]
    assert len(files(tmp_path / "away")) == 3 * 2 * len(NAMES)
    assert contents(tmp_path / "away") == contents(tmp_path / "here")


class Once:
    """Does something, in a thread of its own, as soon as a run reports progress, or has finished."""

    def __init__(self, deed: Callable[[], object], when: Literal["advanced", "finished"] = "advanced") -> None:
        self._deed = deed
        self._when = when
        self._lock = threading.Lock()
        self.done = False

    def advanced(self, task: Task, now_ns: int) -> None:
        self._told("advanced")

    def finished(self, task: Task) -> None:
        self._told("finished")

    def _told(self, what: str) -> None:
        if what == self._when:
            threading.Thread(target=self._do).start()

    def _do(self) -> None:
        with self._lock:
            if not self.done:
                self._deed()
                self.done = True


NEVER_DONE = """
import time
import bufferscope.running.cluster.worker as worker
from bufferscope.running.job import perform

def never_done(task, identity, place, progress):
    perform(task, identity, place, progress)
    while progress(task.duration_ns, task.duration_ns):
        time.sleep(0.05)

worker.perform = never_done
"""
"""Makes a worker that simulates, but is in the middle of its job until it is killed."""


def test_the_jobs_of_a_worker_that_is_killed_run_elsewhere(there: Cluster, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL + SWEEP)
    doomed = there.add_worker(preload=NEVER_DONE)
    killer = Once(lambda: there.kill(doomed))
    bs.run(lab, repeat=4, out=tmp_path / "away", cluster=there.address, watcher=killer)
    assert killer.done
    bs.run(lab, repeat=4, out=tmp_path / "here")
    assert contents(tmp_path / "away") == contents(tmp_path / "here")
    assert len(files(tmp_path / "away")) == 3 * 4 * len(NAMES)


def test_a_worker_that_comes_later_takes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = write(tmp_path, SMALL)
    with cluster(tmp_path, [NEVER_DONE]) as lonely:

        def replace(preload: str = "") -> None:
            lonely.kill(*lonely.alive())
            lonely.add_worker(preload=preload)

        replaced = Once(replace)
        bs.run(lab, out=tmp_path / "out", cluster=lonely.address, watcher=replaced)
        assert replaced.done

        replace(NEVER_DONE)
        monkeypatch.setattr("bufferscope.running.cluster.executor.PATIENCE_S", 1.0)
        killed = Once(lambda: lonely.kill(*lonely.alive()))
        with pytest.raises(bs.EngineError, match="its worker was lost, and no other that could run it came"):
            bs.run(lab, seed=2, out=tmp_path / "out", cluster=lonely.address, watcher=killed)
        assert len(list((tmp_path / "out" / "lab").iterdir())) == 1

        monkeypatch.setattr("bufferscope.running.cluster.connection.JOIN_S", 1)
        with pytest.raises(bs.EngineError, match=r"has 0 of 1 workers .* start one with `dask worker tcp://"):
            bs.run(lab, out=tmp_path / "out", cluster=lonely.address)


def test_a_scheduler_that_is_lost_ends_the_sweep_and_its_jobs(tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL + ENDLESS)
    with cluster(tmp_path, [""]) as doomed:
        killed = Once(doomed.kill_scheduler, when="finished")
        with pytest.raises(RunsFailedError, match="the scheduler was lost") as lost:
            bs.run(lab, out=tmp_path / "out", cluster=doomed.address, watcher=killed)
        assert [run.scenario["duration_ns"] for run in lost.value.finished] == [10**9]
        (worker,) = doomed.workers.values()
        assert worker.wait(PATIENCE_S) is not None, "nobody wants the endless run any longer"


def test_a_scheduler_that_is_lost_while_a_run_is_fetched_is_named(
    there: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(future: Future) -> None:
        raise CommClosedError("in <TCP (closed) ConnectionPool.gather>")

    monkeypatch.setattr(Future, "result", lost)
    with pytest.raises(bs.EngineError, match="the scheduler was lost"):
        bs.run(write(tmp_path, SMALL), out=tmp_path / "out", cluster=there.address)


def test_ctrl_c_keeps_what_is_done_and_ends_the_jobs(there: Cluster, tmp_path: Path) -> None:
    write(tmp_path, SMALL + ENDLESS)
    with start(["run", "lab.toml", "--cluster", there.address], tmp_path) as process:
        wait_until(lambda: bool(there.busy()) and len(list(tmp_path.glob("results/lab/[!.]*"))) == 1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, out) == (130, "")
    said = err.splitlines()[-1]
    assert said == "bufferscope: interrupted after 1 of 2 runs; the finished runs are complete, in results/lab/"
    assert "Traceback" not in err
    assert len(bs.load(tmp_path / "results" / "lab").runs) == 1
    wait_until(lambda: not there.running())


def test_workers_of_another_build_are_refused_by_name(there: Cluster, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)
    preloads = {
        "import bufferscope.base.build as build\nbuild.fingerprint = lambda: 'feedbeef'\n": "build feedbeef; expected",
        "import sys\nsys.modules['bufferscope'] = None\n": "this build of bufferscope is not installed there",
        "from bufferscope.running.cluster import worker\nworker.build = lambda: [1]\n": "not a worker of bufferscope",
    }
    for preload, words in preloads.items():
        wrong = there.add_worker(preload=preload)
        with pytest.raises(bs.EngineError, match=words) as refused:
            bs.run(lab, out=tmp_path / "out", cluster=there.address)
        assert str(refused.value).startswith(f"worker {wrong}: ")
        there.kill(wrong)
    assert files(tmp_path / "out") == {}


HOSTILE = """
import bufferscope.running.cluster.worker as worker

def work(job, sweep, number):
    if job.seed == 1:
        return {"files": {"../../../escaped": b"x"}}
    if job.seed == 2:
        return {"error": "red: \x1b[31m"}
    if job.seed == 3:
        return 3
    raise KeyError("\x1b[31m")

worker.work = work
"""


def test_what_a_worker_sends_home_is_not_believed(tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)
    with cluster(tmp_path, [HOSTILE]) as hostile, pytest.raises(RunsFailedError) as failed:
        bs.run(lab, repeat=4, out=tmp_path / "out", cluster=hostile.address)
    (address,) = hostile.workers
    expected = ", ".join([*(f"{table}.parquet" for table in bs.TABLES), "run.json"])
    assert [str(error) for _, error in failed.value.failures] == [
        f"worker {address}: found something else than the files of a run; expected {expected}",
        f"worker {address}: red: \\x1b[31m",
        f"worker {address}: sent int instead of a run",
        "a worker: KeyError: '\\x1b[31m'",
    ]
    assert files(tmp_path / "out") == {}
    assert not list(tmp_path.rglob("escaped"))


RAISES = """
import sys, types
import bufferscope.running.cluster.worker as worker

class Odd({base}):
    pass

Odd.__module__ = "only_here"
sys.modules["only_here"] = types.ModuleType("only_here")
sys.modules["only_here"].Odd = Odd

def fail(*_, **__):
    raise Odd("the disk is on fire")

worker.{function} = fail
"""
"""Makes a worker in which a function raises an exception of a type that the client doesn't have."""


@pytest.mark.parametrize(
    ("function", "base", "said"),
    [
        ("perform", "Exception", "worker {address}: Odd: the disk is on fire"),
        ("perform", "BaseException", "worker {address}: Odd: the disk is on fire"),
        ("engines", "Exception", "on sim: worker {address}: Odd: the disk is on fire"),
        ("answers", "Exception", "worker {address}: an exception of a type that is not known here"),
        ("work", "Exception", "a worker: an exception of a type that is not known here"),
    ],
)
def test_an_exception_that_the_client_cannot_unpickle_is_told(
    function: str, base: str, said: str, tmp_path: Path
) -> None:
    lab = write(tmp_path, SMALL)
    with cluster(tmp_path, [RAISES.format(function=function, base=base)]) as odd:
        with pytest.raises(bs.EngineError) as failed:
            bs.run(lab, out=tmp_path / "out", cluster=odd.address)
        (address,) = odd.workers
    assert said.format(address=address) in str(failed.value)
    assert "pickl" not in str(failed.value)
    assert files(tmp_path / "out") == {}


def test_what_no_worker_can_run_is_refused_with_their_reason(there: Cluster, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)
    with pytest.raises(bs.EngineError, match="on guest: ") as refused:
        bs.run(lab, engine="guest", out=tmp_path, cluster=there.address)
    first = min(there.alive())
    assert f"worker {first} (and 1 more): nowhere not found, and the guest engine needs it" in str(refused.value)
    little_memory = "from bufferscope.base import machine\nmachine.available_bytes = lambda: 1000\n"
    needs = r"on sim: worker tcp://.* would need about .* of memory"
    with cluster(tmp_path, [little_memory]) as little, pytest.raises(bs.EngineError, match=needs):
        bs.run(lab, out=tmp_path, cluster=little.address)
    with pytest.raises(bs.InputError, match="engine host runs in real time and only on this machine"):
        bs.run(lab, engine="host", out=tmp_path, cluster=there.address)


@pytest.mark.guest
def test_a_guest_runs_on_the_worker_that_has_it(there: Cluster, tmp_path: Path) -> None:
    build_guest()
    has_it = there.add_worker(qemu=program("qemu-system-x86_64"))
    lab = write(tmp_path, SMALL)
    options: dict[str, Any] = {"engine": ["sim", "guest"], "overrides": ["duration=1s"]}
    bs.run(lab, out=tmp_path / "away", cluster=there.address, **options)
    there.kill(has_it)
    bs.run(lab, out=tmp_path / "here", **options)
    assert contents(tmp_path / "away") == contents(tmp_path / "here")


def test_stored_runs_are_reused(there: Cluster, tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL + SWEEP)
    first = bs.run(lab, out=tmp_path / "out")
    again = bs.run(lab, repeat=2, out=tmp_path / "out", cluster=there.address, reuse=True)
    kept = {run.id: run.meta["started"] for run in again.runs if run.seed == 1}
    assert {run.id: run.meta["started"] for run in first.runs} == kept
    assert len(again.runs) == 6


@pytest.mark.parametrize("command", [["run"], ["reproduce"], ["agree", "--reference", "guest"]])
def test_wrong_addresses_are_refused_by_every_command(command: list[str], cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    for address in ("", "local:0", "local:x", "tcp://", "tcp://host", "tcp://host:99999", "http://host:1", "host:8786"):
        answer = cli(*command, "lab.toml", "--cluster", address)
        assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer
        assert "--cluster: found" in answer.err
        assert "allowed: " in answer.err
    answer = cli(*command, "lab.toml", "--cluster", "local", "--jobs", "2")
    said = "--jobs 2: only for runs on this machine; on a cluster, its workers' threads decide"
    assert answer == Answer(2, "", f"bufferscope: {said}\n")


def test_a_scheduler_that_is_not_there_is_said_within_seconds(cli: Cli, tmp_path: Path) -> None:
    """A port on which nobody listens, and a server that never answers."""
    write(tmp_path, SMALL)
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closed:
        ports = [server.getsockname()[1] for server in (silent, closed)]
        closed.close()
        for port in ports:
            begun = time.monotonic()
            answer = cli("run", "lab.toml", "--cluster", f"tcp://127.0.0.1:{port}")
            assert time.monotonic() - begun < 30
            assert (answer.status, answer.out, answer.err.count("\n")) == (1, "", 1), answer
            assert answer.err.startswith(f"bufferscope: no Dask scheduler answers at tcp://127.0.0.1:{port} (")


def test_without_dask_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    (tmp_path / "distributed.py").write_text("raise ModuleNotFoundError(name='distributed')")
    with start(["run", "lab.toml", "--cluster", "local"], tmp_path) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
        said = "--cluster needs Dask, which is not installed here: python -m pip install 'distributed>=2025.9'"
        assert (process.returncode, out, err) == (2, "", f"bufferscope: {said}\n")
    assert any(need.startswith("distributed>=2025.9 ;") for need in requires("bufferscope") or []), (
        "as in pyproject.toml"
    )


def test_a_script_may_start_workers_here(tmp_path: Path) -> None:
    """Without a guard against being run again by its own workers, on a terminal that shows nothing of Dask's log."""
    write(tmp_path, SMALL + SWEEP)
    script = "import bufferscope as bs\nprint(len(bs.run('lab.toml', cluster='local:1').runs))\n"
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-W", "error", "script.py"]
    (scratch := tmp_path / "scratch").mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")
    assert list(scratch.iterdir()) == [], "what the workers needed is gone with them"
