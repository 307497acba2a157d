"""The host engine: the same experiment on this machine's kernel."""

import time
from pathlib import Path

import polars as pl
import pytest
from dumbbell import dumbbell, pfifo
from laboratory import SMALL, SWEEP, until_undisturbed, write

import bufferscope as bs
from bufferscope import _core
from bufferscope.base.errors import EngineError
from bufferscope.engines import agent
from bufferscope.engines.host import engine as host
from bufferscope.interop.inspection.inspecting import inspect
from bufferscope.interop.packets.exporting import export_packets
from bufferscope.model.experiment import load

LAB = dumbbell(
    "Dumbbell",
    "3s",
    access={"delay": "5ms"},
    bottleneck={"delay": "5ms", "queue": pfifo(50)},
    bulk={"congestion": "reno"},
    ping={"interval": "100ms"},
)
PROPAGATION_NS = 20_000_000
LIMIT_PACKETS = 50


@pytest.fixture
def ready() -> None:
    try:
        found = host.capabilities()
    except EngineError as error:
        pytest.skip(str(error))
    if not found["qdiscs"]["htb"]:
        pytest.skip("this kernel has no htb")


@pytest.mark.usefixtures("ready")
def test_a_run_on_the_kernel_is_stored_like_any_other(tmp_path: Path) -> None:
    (run,) = bs.run(write(tmp_path, LAB), engine="host", out=tmp_path / "out").runs
    assert run.engine == "host"
    assert run.meta["summary"]["kernel"]
    assert run.meta["cpu_s"] > 0.01, "the agent's and its tools', not this process's"
    assert run.meta["summary"]["privilege"] in ("root", "user-namespace")
    assert run.probes.height == 30
    assert run.queues.filter(pl.col("packets") > LIMIT_PACKETS).is_empty()
    assert run.probes.filter(pl.col("rtt_ns") < PROPAGATION_NS).is_empty()


@pytest.mark.usefixtures("ready")
def test_answers_to_another_ping_do_not_wake_one_that_has_not_started(tmp_path: Path) -> None:
    later = '\n[[traffic]]\nname = "later"\nkind = "ping"\nfrom = "h1"\nto = "h2"\nstart = "1s"\ntiming = "iputils"\n'
    (run,) = bs.run(write(tmp_path, LAB.replace('"3s"', '"2s"') + later), engine="host", out=tmp_path / "out").runs
    first = run.probes.group_by("probe").agg(pl.col("sent_ns").min())
    assert first.filter(probe="ping")["sent_ns"].item() < 1_000_000_000 <= first.filter(probe="later")["sent_ns"].item()


@pytest.mark.usefixtures("ready")
def test_a_bulk_flow_fills_its_queue(tmp_path: Path) -> None:
    """A pfifo drops only what arrives when it is full. The kernel counts that; samples may be too late to see it."""
    lab = write(tmp_path, LAB)

    def judged() -> tuple[bool, str]:
        (run,) = bs.run(lab, engine="host", out=tmp_path / "out").runs
        queue = run.queues.filter(port="r1>h2", layer="qdisc")
        dropped = queue["dropped"].to_list()[-1]
        assert run.drops.filter(port="r1>h2").height == dropped
        stood_high = not queue.filter(pl.col("packets") > LIMIT_PACKETS / 2).is_empty()
        return dropped > 0 and stood_high, "; ".join(run.warnings)

    until_undisturbed(judged)


@pytest.mark.usefixtures("ready")
def test_a_capture_has_every_packet_of_the_wire(tmp_path: Path) -> None:
    def judged() -> tuple[bool, str]:
        (run,) = bs.run(write(tmp_path, LAB), engine="host", capture=True, out=tmp_path / "out").runs
        (file,) = export_packets([run], tmp_path / "packets", force=True)
        found = inspect([file], tmp_path / "inspected").run
        retransmits = run.flows.sort("t_ns")["retransmits"].to_list()[-1]
        duration_ns = run.scenario["duration_ns"]
        seen = found.retransmissions.filter(pl.col("t_ns") <= duration_ns).height
        assert run.meta["summary"]["capture"]["packets"] > 5000
        # The last sample may be taken while one is under way.
        return abs(seen - retransmits) <= 1 and seen > 0, "; ".join(run.warnings)

    until_undisturbed(judged)


@pytest.mark.usefixtures("ready")
def test_an_interrupted_run_ends_at_once(tmp_path: Path) -> None:
    point = load(write(tmp_path, LAB), ["duration=60s"]).points[0]
    began = time.monotonic()
    with pytest.raises(_core.Interrupted):
        host.run(point, 1, tmp_path, lambda now_ns, _: now_ns < 500_000_000)
    assert time.monotonic() - began < 20


def test_what_the_kernel_cannot_run_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacks = "this kernel (5.4.0) has no sch_codel; use --engine guest, or load the modules"
    program = tmp_path / "agent"
    program.write_text(f"""#!/bin/sh\n[ "$1" = --check ] && echo '[null, "{lacks}", "{lacks}"]'\n""")
    program.chmod(0o755)
    monkeypatch.setenv(agent.VARIABLE, str(program))
    with pytest.raises(EngineError) as refusal:
        bs.run(write(tmp_path, SMALL + SWEEP), engine="host", out=tmp_path / "out")
    others = "; --only chooses others, as in --only 'link.line.queue.limit=10p'"
    refused = f"lab (link.line.queue.limit = 20p) on host: {lacks} (and 1 more points can't run)"
    assert str(refusal.value) == refused + others
    assert not (tmp_path / "out").exists()


def test_a_program_that_is_not_there_is_told_with_what_builds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(agent.VARIABLE, "/nonexistent")
    with pytest.raises(EngineError, match=r"no bufferscope-agent at /nonexistent: build it with `make agent`"):
        agent.program()
