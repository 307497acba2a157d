"""Stored live measurements: their tables, their `run.json`, and what was observed, put together again."""

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import livestreams
import polars as pl
import pytest
from handmade import TCP, scenario
from livestreams import BEGIN, LOADS, LOST_DOWN, LOST_UP, MS, PHASES, SECOND

import bufferscope as bs
from bufferscope import _core, metrics
from bufferscope.analysis import live as words
from bufferscope.base.errors import EngineError, InputError, StoreError
from bufferscope.engines.live import program
from bufferscope.engines.live.program import Request
from bufferscope.interop import masking
from bufferscope.interop.exporting import export, export_each
from bufferscope.interop.live import judging, rebuilding, records
from bufferscope.interop.live.measuring import measure, read_events
from bufferscope.model.metric_definitions import definitions
from bufferscope.store.run import Run

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "upload.events.gz"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A complete measurement."""
    place = tmp_path_factory.mktemp("live")
    return measured(place, livestreams.complete())


def measured(place: Path, events: list[dict[str, Any]], host: str = "example.org") -> Run:
    path = livestreams.program(place / "program", events)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(program.VARIABLE, str(path))
        return measure(Request(host, "7Q2M"), place / "results").run


def test_a_measurement_is_stored_like_any_run(run: Run) -> None:
    assert (run.experiment, run.engine) == ("example.org", "live")
    assert run.meta["started"] == "2027-01-15T08:00:00.000+00:00"
    assert run.scenario["duration_ns"] == 24 * SECOND
    assert run.scenario["warmup_ns"] == 4 * SECOND
    assert [(entry["name"], entry["kind"]) for entry in run.scenario["traffic"]] == [
        *(("udp", "irtt"), ("download", "tcp"), ("upload", "tcp"), ("both.down", "tcp"), ("both.up", "tcp")),
    ]
    assert bs.load(run.path).runs[0].id == run.id
    live = run.meta["summary"]["live"]
    assert live["complete"]
    assert live["server"]["kernel"] == "6.12.1"
    assert [phase["kind"] for phase in live["phases"]] == list(PHASES)
    assert [phase["start_ns"] // SECOND for phase in live["phases"]] == [begin for begin, _ in PHASES.values()]
    assert "7Q2M" not in (run.path / "run.json").read_text(), "the token is not stored"
    assert "The last hop does not answer." in run.warnings


def test_every_sample_is_in_a_table(run: Run) -> None:
    echoes = run.probes.filter(probe="udp").sort("seq")
    assert echoes.height == 24 * 50
    assert echoes["seq"].to_list() == list(range(24 * 50))
    assert echoes.filter(pl.col("rtt_ns").is_null())["seq"].to_list() == [LOST_UP, LOST_DOWN]
    assert set(run.probes["probe"].unique()) == {
        *("udp", "connect/any", "exchange/any", "self/up", "self/down"),
    }
    assert set(run.flows["flow"].unique()) == {
        *(f"{name}/{number}" for name in ("download", "upload", "both.down", "both.up") for number in (1, 2)),
        *(f"received.{name}" for name in ("download", "upload", "both.down", "both.up")),
    }
    up = run.one_way.filter(way="data")
    assert (up["change_ns"].min(), up.height) == (0, 24 * 50 - 1)
    assert run.one_way.filter(way="acknowledgements").height == 24 * 50 - 2
    assert run.hops.filter(pl.col("address").is_null())["ttl"].unique().to_list() == [3]
    assert run.hops.height == 24 * 2 * 3
    assert run.stages["stage"].unique().to_list() == ["qdisc"]
    assert set(run.queues["port"].unique()) == {"client>server", "server>client"}
    assert run.queues.filter(layer="ring")["inflight_bytes"].unique().to_list() == [1514]


def normal(observations: Any) -> list[dict[str, Any]]:
    """Observations with times from the first one on, without unknown values and in one order."""
    found = copy.deepcopy(observations)
    begin = min(phase["start_ns"] for phase in found["phases"])
    least = {
        key: min(e[key] for p in found["phases"] for e in p["echoes"] if e.get(key) is not None)
        for key in ("up_ns", "down_ns")
    }
    phases = []
    for phase in found["phases"]:
        own = {"kind": phase["kind"], "start": phase["start_ns"] - begin, "end": phase["end_ns"] - begin}
        for name, samples in phase.items():
            if isinstance(samples, list):
                rows = [
                    {
                        key: value - begin if key == "t_ns" else value - least.get(key, 0) if key in least else value
                        for key, value in sample.items()
                        if value is not None and not (key == "mpls" and not value)
                    }
                    for sample in samples
                ]
                own[name] = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
        phases.append(own)
    return phases


def test_what_was_observed_can_be_put_together_again(run: Run) -> None:
    again = rebuilding.observations(run)
    assert normal(again) == normal(livestreams.observations())
    assert again["ends"] == livestreams.ENDS
    assert again["parameters"] == livestreams.observations()["parameters"]


def test_a_stored_measurement_is_judged_as_it_was_when_it_was_made(run: Run) -> None:
    found = judging.judge(run)
    direct = json.loads(_core.judge(json.dumps(livestreams.observations())))
    for phase in direct["phases"]:
        phase["start_ns"] -= BEGIN
    assert found == direct
    uplink = next(phase for phase in found["phases"] if phase["kind"] == "upload")["where"][0]
    assert uplink["direction"] == "up"
    assert "router_uplink" in {place["place"] for place in uplink["answer"]["locations"]}


def test_hops_of_tcp_and_floods_are_stored_and_shown(tmp_path: Path) -> None:
    observed = livestreams.observations()
    hop = {"end": "client", "ttl": 1, "address": "192.168.1.1", "rtt_ns": 2 * MS, "kind": "exceeded", "mpls": False}
    observed["phases"][0]["tcp_ladder"] = [{"t_ns": BEGIN + SECOND, **hop}]
    observed["floods"] = [
        {
            "direction": "up", "peak_bps": 20_000_000, "start_ns": BEGIN + 22 * SECOND, "end_ns": BEGIN + 23 * SECOND,
            "sent_packets": 1000, "received_packets": 600,
            "rtts": [[BEGIN + 22 * SECOND, 10 * MS], [BEGIN + 22 * SECOND + 20 * MS, None]],
            "received": [[BEGIN + 22 * SECOND, 0], [BEGIN + 23 * SECOND, 1_250_000]],
        }
    ]  # fmt: skip
    worst = {"direction": "up", "delay_ns": 300 * MS, "rate_bps": 10**7, "bytes": 375_000, "loss": 0.4, "full": True}
    events = livestreams.complete()
    end = events[-1]
    events[-1] = {**end, "observations": observed, "verdict": {**end["verdict"], "worst_cases": [worst]}}
    found = measured(tmp_path, events)
    assert found.hops.filter(ladder="client_tcp").select("ttl", "address").rows() == [(1, "192.168.1.1")]
    flood = found.meta["summary"]["live"]["floods"][0]
    assert (flood["start_ns"], flood["rtts"][1]) == (22 * SECOND, [22 * SECOND + 20 * MS, None])
    again = rebuilding.observations(found)
    assert again["phases"][0]["tcp_ladder"] == [{"t_ns": SECOND, **hop}]
    assert again["floods"] == [flood]
    assert words.worst_cases(found.meta["summary"]["live"]["verdict"]).rows == (
        ("up", "300", "375", "10", "40 %", "yes"),
    )
    flood_without_value = {**observed["floods"][0], "received": [[BEGIN]]}
    events[-1] = {**end, "observations": {**observed, "floods": [flood_without_value]}}
    with pytest.raises(EngineError, match=r"floods\[0\].received\[0\]"):
        measured(tmp_path, events)


def test_other_json_is_no_observation() -> None:
    with pytest.raises(ValueError, match="observations"):
        _core.judge('{"phases": 3}')


def test_two_measurements_of_a_host_are_two_runs(tmp_path: Path) -> None:
    first = measured(tmp_path, livestreams.complete())
    later = livestreams.complete()
    later[0]["realtime_ns"] += 60 * SECOND
    second = measured(tmp_path, later)
    assert first.path != second.path
    assert first.scenario_digest != second.scenario_digest


def test_a_partial_measurement_says_so(tmp_path: Path) -> None:
    found = measured(tmp_path, [livestreams.start(), livestreams.interrupted()])
    assert not found.meta["summary"]["live"]["complete"]
    assert "The measurement is not complete: interrupted." in found.warnings
    assert normal(rebuilding.observations(found)) == normal(livestreams.observations(["idle", "download"]))


def test_a_measurement_without_any_sample_is_stored_too(tmp_path: Path) -> None:
    last = livestreams.end([], complete=False, reason="the server stopped answering")
    found = measured(tmp_path, [livestreams.start(), last])
    assert found.probes.is_empty()
    assert found.hops.is_empty()
    assert not (found.path / "hops.parquet").exists()
    assert rebuilding.observations(found)["phases"] == []


def test_only_live_measurements_can_be_judged(tmp_path: Path) -> None:
    simulated = bs.run("ucas-reproduce", {"duration": "1s"}, out=tmp_path).runs[0]
    with pytest.raises(InputError, match="no live measurement"):
        judging.judge(simulated)


@pytest.mark.parametrize(
    ("key", "value"),
    [("sentences", ["red \x1b[31m"]), ("sentences", ["x" * 5000]), ("grade", "Z"), ("phases", {}), ("idle", None)],
)
def test_a_stored_verdict_is_checked(run: Run, tmp_path: Path, key: str, value: object) -> None:
    meta = json.loads((run.path / "run.json").read_text())
    meta["summary"]["live"]["verdict"][key] = value
    (tmp_path / "run.json").write_text(json.dumps(meta))
    with pytest.raises(StoreError, match=r"summary\.live\.verdict"):
        Run(tmp_path)


def test_ranges_are_read_as_they_are_written() -> None:
    for numbers in ([], [0], [1, 2, 3], [1, 3, 4, 9, 10, 11, 20]):
        assert list(rebuilding._numbers(records.ranges(numbers), 100)) == numbers
    assert list(rebuilding._numbers("5-999999999999", 8)) == [5, 6, 7], "of a file of unknown origin"


def test_the_longest_phase_names_its_loads(run: Run) -> None:
    both = run.scenario["traffic"][-1]
    assert (both["name"], both["start_ns"], both["stop_ns"]) == ("both.up", 16 * SECOND, 22 * SECOND)
    assert [both["from"], both["to"]] == [0, 1]
    assert len(LOADS) == 3
    assert MS * 1000 == SECOND


def test_an_export_keeps_hops_apart_without_their_addresses(run: Run, tmp_path: Path) -> None:
    plain = pl.read_csv(export([run], tmp_path / "plain", tables=["hops"])[0])
    masked = pl.read_csv(export([run], tmp_path / "masked", tables=["hops"], mask_addresses=True)[0])
    assert set(plain["address"].drop_nulls()) == {"192.168.1.1", "203.0.113.1"}
    pairs = set(zip(plain["address"].drop_nulls(), masked["address"].drop_nulls(), strict=True))
    # 203.0.113.0/24 is for documentation (RFC 5737), so it is not reached from everywhere either.
    assert pairs == {("192.168.1.1", "hop1-private"), ("203.0.113.1", "hop2-private")}
    assert plain.drop("address").equals(masked.drop("address"))
    assert masking._class("198.51.99.1") == masking._class("2606:4700::1") == "public"
    assert masking._class("100.64.0.1") == "private"


def test_a_run_without_hops_is_exported_without_that_table(tmp_path: Path) -> None:
    simulated = bs.run("ucas-reproduce", {"duration": "1s"}, out=tmp_path).runs[:1]
    names = {file.stem for file in export(simulated, tmp_path / "csv", mask_addresses=True)}
    assert names == {"runs", "metrics", *bs.TABLES} - {"flow_queues", "hops", "stages"}


def test_events_that_were_kept_are_a_measurement_too(tmp_path: Path) -> None:
    content = gzip.decompress(EXAMPLE.read_bytes())
    found = read_events(content.splitlines(keepends=True), tmp_path)
    assert found.experiment == "example.org"
    verdict = found.meta["summary"]["live"]["verdict"]
    again = judging.judge(found)
    for each in (verdict, again):  # the words and the probabilities may be those of different versions
        assert [phase["outcome"]["kind"] for phase in each["phases"]] == ["clean", "queue", "queue"]
        assert each["grade"] == "C"
    with pytest.raises(EngineError, match="without a beginning"):
        read_events(content.splitlines()[:3], tmp_path)


def test_python_measures_as_the_command_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = livestreams.program(tmp_path / "program", livestreams.complete())
    monkeypatch.setenv(program.VARIABLE, str(path))
    monkeypatch.setenv(program.TOKEN, "7Q2M")
    found = bs.measure("example.org:47300", phases=["upload"], flows=2, out=tmp_path / "results")
    assert found.experiment == "example.org"
    assert found.metrics["live.upload.added.p95_ms"] == 80.2
    assert (tmp_path / "program" / "called").read_text().split("\n")[-1] == "7Q2M"
    with pytest.raises(InputError, match="phases"):
        bs.measure("example.org", phases="upload", out=tmp_path)  # type: ignore[arg-type]


def test_a_measurement_has_the_metrics_of_its_phases_and_no_others(run: Run) -> None:
    assert all(name.startswith("live.") for name in run.metrics)
    assert run.metrics["live.download.down.goodput_mbit"] == 40
    assert run.metrics["live.upload.up.buffer_kb"] == 103
    assert run.metrics["live.upload.up.loss_percent"] == pytest.approx(0.33)
    known = metrics.names(run.scenario)
    assert not [name for name in run.metrics if not metrics.definition(name)]
    assert set(run.metrics) <= set(known)
    own = [each for each in definitions() if each.name.startswith("live.")]
    assert not [each.name for each in own if not any(map(each.fits, run.metrics))]
    assert not [name for name in metrics.names(scenario({"download": TCP})) if name.startswith("live.")]


def test_a_percentile_among_the_lost_echoes_is_censored(tmp_path: Path) -> None:
    events = livestreams.complete()
    added = events[-1]["verdict"]["phases"][1]["numbers"]["added"]
    added.update(p99_ns=None, censored=True)
    found = measured(tmp_path, events)
    assert "live.upload.added.p99_ms" in found.metrics.censored
    assert "live.upload.added.p95_ms" not in found.metrics.censored


def test_flent_reads_a_measurement(run: Run, tmp_path: Path) -> None:
    (file,), _ = export_each([run], tmp_path, "flent")
    content = json.loads(gzip.decompress(file.read_bytes()))
    assert "Ping (ms) UDP BE" in content["results"]
    assert len([name for name in content["results"] if name.startswith("TCP upload BE::")]) == 4
