"""A simulation in steps: its records, its state, what changes in between, and the errors of wrong use."""

import math
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from dumbbell import dumbbell, pfifo
from laboratory import SMALL, SWEEP, TABLES, running, write

import bufferscope as bs
from bufferscope._core import OPTIONAL_TABLES
from bufferscope.analysis import findings
from bufferscope.base import machine

LAB = SMALL + SWEEP.replace("[sweep]", "[sweep]\n")
LONG = SMALL.replace('"2s"', '"86400s"')
OVERLOAD = dumbbell(
    "Twice as much as the link takes",
    "10s",
    access=None,
    bottleneck={"name": "line", "ends": ["h1", "h2"], "rate": "1mbit", "delay": "5ms", "queue": pfifo(50)},
    bulk={"name": "load", "kind": "udp", "flows": None, "congestion": None, "size": "1208b", "rate": "1933kbit"},
    ping=None,
)
"""A frame takes 10 ms, and two arrive in that time."""


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.schema == other.schema and one.equals(other)


def test_a_run_in_steps_is_the_run_that_is_stored(tmp_path: Path) -> None:
    stored = bs.run(write(tmp_path, LAB), seed=3, out=tmp_path / "whole").runs[1]
    simulation = bs.Simulation(tmp_path / "lab.toml", seed=3, point=1)
    assert list(simulation.steps(0.3)) == pytest.approx([0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.0])
    run = simulation.finish()
    assert (run.id, run.point, run.seed, run.engine) == (stored.id, stored.point, 3, "sim")
    for table, columns in bs.TABLES.items():
        assert getattr(run, table).columns == ["run", *columns]
        assert same(getattr(run, table), getattr(stored, table))
    assert dict(run.metrics) == dict(stored.metrics)
    assert run.meta["summary"] == stored.meta["summary"]
    assert simulation.finish() is run
    assert simulation.is_over

    saved = run.save(tmp_path / "steps")
    assert saved.path == tmp_path / "steps" / "lab" / run.id
    assert not [table for table in OPTIONAL_TABLES if (saved.path / f"{table}.parquet").exists()]
    for table in TABLES:
        name = f"{table}.parquet"
        assert (saved.path / name).read_bytes() == (stored.path / name).read_bytes()
    assert saved.scenario == stored.scenario


def test_a_run_in_memory_has_charts() -> None:
    run = bs.Simulation(SMALL).finish()
    assert list(run.figures) == ["rtt"]
    assert run.figures["queue_length"].to_dict()["datasets"]
    assert "rtt.p95_ms" in run._repr_html_()


@pytest.mark.parametrize("change", ["link.line.queue.limit=5p", "link.line.delay=1ms"])
def test_no_equation_is_drawn_of_a_network_that_was_changed(change: str) -> None:
    simulation = bs.Simulation(SMALL)
    simulation.advance(1)
    simulation.set(change)
    with pytest.raises(bs.figures.NoDataError, match="the run was changed on the way"):
        _ = simulation.finish().figures["rtt_equation"]
    unchanged = bs.Simulation(SMALL)
    unchanged.set(change)
    _ = unchanged.finish().figures["rtt_equation"]


def test_no_finding_is_told_of_a_network_that_was_changed() -> None:
    """The delay of the path, with which the finding compares the round-trip time, was another most of the time."""
    slow = {"duration": "10s", "link.line.rate": "2mbit"}
    changed, unchanged = bs.Simulation(SMALL, slow), bs.Simulation(SMALL, slow)
    changed.advance(9.9)
    changed.set("link.line.delay=8ms")
    assert findings.find([unchanged.finish()])
    assert findings.find([changed.finish()]) is None


def test_the_state_is_that_of_the_present() -> None:
    simulation = bs.Simulation(OVERLOAD)
    before = simulation.state()
    assert (before.now_s, before.flows) == (0, {})
    simulation.advance(until=2)
    state = simulation.state()
    assert simulation.now_s == state.now_s == 2
    port, flow = state.ports["h1>h2"], state.flows["load/1"]
    assert (port.rate_bps, port.delay_ns, port.qdisc, port.queued) == (1_000_000, 5_000_000, "pfifo", 50)
    assert port.queued_bytes == 50 * 1250
    assert port.arrived == port.sent + port.queued + port.dropped
    # One packet leaves every 10 ms, and arrives 15 ms later.
    assert port.sent == 200
    assert flow.delivered_bytes == port.delivered * 1208
    assert flow.cwnd_bytes is None


def test_the_state_of_a_connection_is_that_of_its_next_sample() -> None:
    simulation = bs.Simulation(SMALL)
    simulation.advance(1.5)
    flow = simulation.state().flows["bulk/1"]
    run = simulation.finish()
    row = run.flows.row(by_predicate=pl.col("t_ns") == 1_500_000_000, named=True)
    assert {key: value for key, value in vars(flow).items() if row[key] != value} == {}
    assert flow.state in ("open", "disorder", "recovery")


def test_tables_can_be_read_on_the_way() -> None:
    simulation = bs.Simulation(SMALL)
    assert simulation.tables["queues"].is_empty()
    simulation.advance(1)
    half = simulation.tables["queues"]
    assert half.columns == bs.TABLES["queues"]
    assert half["t_ns"].max() == 990_000_000
    whole = simulation.finish().queues
    assert same(half, whole.drop("run").head(half.height))
    assert same(simulation.tables["queues"], whole.drop("run"))
    assert list(simulation.tables) == list(bs.TABLES)
    with pytest.raises(bs.InputError, match=r"no table is called 'queue'.*queues"):
        simulation.tables["queue"]


def test_what_is_set_takes_effect_from_then_on() -> None:
    simulation = bs.Simulation(OVERLOAD)
    simulation.advance(2)
    simulation.set("link.line.rate=10mbit")
    simulation.advance(1)
    simulation.set({"link.line.queue": {"qdisc": "codel"}, "link.line.delay": "1ms"}, "traffic.load.stop=4s")
    port = simulation.state().ports["h1>h2"]
    assert (port.rate_bps, port.delay_ns, port.qdisc) == (10_000_000, 1_000_000, "codel")
    run = simulation.finish()
    assert run.meta["summary"]["changes"] == [
        {"t_ns": 2_000_000_000, "set": ["link.line.rate=10mbit"]},
        {
            "t_ns": 3_000_000_000,
            "set": ['link.line.queue={qdisc = "codel"}', "link.line.delay=1ms", "traffic.load.stop=4s"],
        },
    ]
    forward = run.scenario["links"][0]["forward"]
    assert forward["rate"] == [
        {"from_ns": 0, "bits_per_second": 1_000_000},
        {"from_ns": 2_000_000_000, "bits_per_second": 10_000_000},
    ]
    assert run.scenario["traffic"][0]["stop_ns"] == 4_000_000_000
    # The first 2 s are full, and of the other 8 s only 2 s have traffic, about 1.93 Mbit/s and what waited.
    expected = (2 * 1 + 2 * 2 + 0.5) / (2 * 1 + 8 * 10)
    assert run.metrics["utilization.h1>h2"] == pytest.approx(expected, rel=0.02)


def test_the_same_calls_give_the_same_bytes(tmp_path: Path) -> None:
    def made(place: str, step: float) -> dict[str, bytes]:
        simulation = bs.Simulation(SMALL, seed=2)
        for now_s in simulation.steps(step):
            if now_s == 1:
                simulation.set("link.line.rate=1mbit", "traffic.bulk.flows=3")
        path = simulation.finish().save(tmp_path / place).path
        return {file.name: file.read_bytes() for file in path.glob("*.parquet")}

    assert made("one", 0.5) == made("other", 0.25)
    assert len(made("one", 1)) == len(TABLES)


def test_an_experiment_comes_from_a_name_a_file_a_text_or_an_object(tmp_path: Path) -> None:
    experiment = bs.Simulation(write(tmp_path, SMALL), ["duration=1s"]).experiment
    assert (experiment.name, experiment.overrides) == ("lab", ("duration=1s",))
    again = bs.Simulation(experiment, {"link.line.rate": "2mbit"})
    assert (again.experiment.name, again.duration_s) == ("lab", 1)
    assert again.experiment.overrides == ("duration=1s", "link.line.rate=2mbit")
    assert bs.Simulation(SMALL).experiment.title == "A small lab"
    assert bs.Simulation("ucas-reproduce").experiment.name == "ucas-reproduce"
    with pytest.raises(bs.ExperimentError, match="no experiment is called"):
        bs.Simulation("no-such")
    with pytest.raises(bs.ExperimentError, match=r"the experiment: link\.line\.rate"):
        bs.Simulation(SMALL, ["link.line.rate=fast"])


WRONG: list[tuple[str, Callable[[bs.Simulation], object], str]] = [
    ("the past", lambda s: s.advance(until=0.5), "can't advance to 0.5 s: the simulation is at 1 s, and its duration"),
    ("too far", lambda s: s.advance(1.5), "can't advance to 2.5 s: .* its duration is 2 s"),
    ("much too far", lambda s: s.advance(1e300), "can't advance to "),
    ("more than a float holds", lambda s: s.advance(10**400), "can't advance to "),
    ("back", lambda s: s.advance(-0.1), "seconds: found -0.1; allowed: a number of seconds, 0 or more"),
    ("not a number", lambda s: s.advance(math.nan), "seconds: found nan"),
    ("for ever", lambda s: s.advance(until=math.inf), "until: found inf"),
    ("a text", lambda s: s.advance("1s"), "seconds: found '1s'"),  # type: ignore[arg-type]
    ("nothing", lambda s: s.advance(), "give either the seconds to advance by, or until="),
    ("both", lambda s: s.advance(1, until=2), "give either the seconds to advance by, or until="),
    ("no step", lambda s: list(s.steps(0)), "steps: found 0 s; allowed: at least 1 ns"),
    ("nothing to set", lambda s: s.set(), "set: found nothing"),
    ("the duration", lambda s: s.set("duration=3s"), "duration: not possible in a running simulation; rate, delay"),
    ("the title", lambda s: s.set("title=x"), "--set: found .*title=x.*no key of the network or its traffic"),
    ("the sweep", lambda s: s.set("sweep.link.line.rate=['1mbit']"), "no key of the network or its traffic"),
    ("a wrong value", lambda s: s.set("link.line.rate=fast"), "link.line.rate"),
    ("an unknown link", lambda s: s.set("link.wire.rate=1mbit"), "link.wire"),
    ("a later stop", lambda s: s.set("traffic.bulk.stop=0.5s"), "traffic.bulk.stop: not possible in a running"),
]


@pytest.mark.parametrize(("use", "words"), [wrong[1:] for wrong in WRONG], ids=[wrong[0] for wrong in WRONG])
def test_wrong_use_is_one_clear_error_and_changes_nothing(use: Callable[[bs.Simulation], object], words: str) -> None:
    simulation = bs.Simulation(SMALL)
    simulation.advance(1)
    before = simulation.state()
    with pytest.raises((bs.InputError, bs.ExperimentError), match=words):
        use(simulation)
    assert simulation.state() == before
    assert "changes" not in simulation.finish().meta["summary"]


def test_after_the_end_only_the_records_are_left() -> None:
    simulation = bs.Simulation(SMALL)
    simulation.finish()
    assert (simulation.now_s, simulation.is_over) == (2, True)
    for use in (lambda: simulation.advance(0), simulation.state, lambda: simulation.set("link.line.rate=1mbit")):
        with pytest.raises(bs.InputError, match="the simulation is finished"):
            use()
    assert list(simulation.steps(0.1)) == []
    assert simulation.tables["probes"].height > 0


@pytest.mark.parametrize(("seed", "point"), [(-1, 0), (2**64, 0), (1, 1), (1, -1), (1.5, 0), ("1", 0), (1, 0.0)])
def test_wrong_arguments_are_refused(seed: Any, point: Any) -> None:
    with pytest.raises(bs.InputError, match=r"found .*; allowed: "):
        bs.Simulation(SMALL, seed=seed, point=point)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    simulation = bs.Simulation(SMALL, seed=np.int64(3), point=np.int64(0))  # type: ignore[arg-type]
    simulation.advance(np.float32(0.5))  # type: ignore[arg-type]
    simulation.advance(until=np.int64(1))  # type: ignore[arg-type]
    assert next(simulation.steps(np.float64(0.25))) == 1.25
    assert simulation.finish().save(tmp_path).seed == 3


def test_a_table_whose_name_is_no_text_is_not_there() -> None:
    tables: Any = bs.Simulation(SMALL).tables
    assert 1 not in tables
    with pytest.raises(bs.InputError, match="no table is called 1"):
        _ = tables[1]


def test_what_the_simulator_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = bs.Simulation(SMALL)
    monkeypatch.setattr(machine, "available_bytes", lambda: 1000)
    with pytest.raises(bs.EngineError, match="of memory"):
        bs.Simulation(SMALL)
    with pytest.raises(bs.EngineError, match="of memory"):
        simulation.set("traffic.bulk.flows=100")
    assert "changes" not in simulation.finish().meta["summary"]


def test_another_thread_gets_an_error_while_a_simulation_advances() -> None:
    simulation = bs.Simulation(LONG)
    errors: list[str] = []

    def advance() -> None:
        try:
            simulation.advance(100)
        except bs.EngineError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=advance) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == ["another thread is using this simulation"]
    assert simulation.now_s == 100


def test_ctrl_c_ends_the_step_and_leaves_what_is_there_to_read() -> None:
    program = f"""
import bufferscope as bs
simulation = bs.Simulation({LONG!r})
print("begun", flush=True)
try:
    simulation.finish()
except KeyboardInterrupt:
    assert simulation.tables["queues"].height > 0
    assert simulation.state().now_s == simulation.now_s < 86400
    try:
        simulation.advance(1)
    except bs.EngineError as error:
        print(error)
"""
    with running([sys.executable, "-c", program]) as process:
        assert process.stdout
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "the simulation was interrupted\n"
    assert process.returncode == 0
