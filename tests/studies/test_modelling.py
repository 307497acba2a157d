"""`bufferscope model`: models of paths that they do not know, compared with them before and after a change.

The paths are drawn at random (`lines.hidden`), and simulated. Their structure differs from that of the models: delays
differ by direction, queues have limits in packets or bytes, and some paths have jitter.
"""

import dataclasses
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cures
import lines
import polars as pl
import pytest
from laboratory import Answer
from livestreams import SECOND

import bufferscope as bs
from bufferscope.base.errors import InputError
from bufferscope.cli.models import sentence
from bufferscope.interop.live.measuring import read_events
from bufferscope.model.experiment import load
from bufferscope.store.run import Run
from bufferscope.studies.modelling.fitting import LineFit, fit, fits
from bufferscope.studies.modelling.measured import PhaseResult, of_live
from bufferscope.studies.modelling.predicting import NEAR, TAIL, Prediction, summarised
from bufferscope.studies.modelling.shaping import shaped

Cli = Callable[..., Answer]
FIRST = 66_857_684_000
"""The first seed of the paths that `docs/model.md` reports."""
PATHS = 50 if os.environ.get("WHOLE_CATALOGUE") else 3
FITTING = 0.9
"""The part of the paths whose model fits."""
PREDICTED, CLOSE_MS = 0.15, 2.0
TAILS = 0.95
"""The part of the predictions whose 95th percentile is as close, if simulations of the model agree about it."""
BOUNDED = 0.8
"""The part of the other predictions within whose bounds it is."""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[lines.HiddenPath, Run, LineFit]]:
    """The paths, what was measured on them, and their models."""
    found = []
    for seed in range(FIRST, FIRST + PATHS):
        path = lines.hidden(seed)
        run = lines.measured(path, tmp_path_factory.mktemp("hidden"))
        found.append((path, run, fit(of_live(run))))
    return found


def test_models_behave_as_the_paths_did(held: list[tuple[lines.HiddenPath, Run, LineFit]]) -> None:
    good = [fitted for _, _, fitted in held if fitted.fits]
    assert len(good) >= FITTING * len(held) - 1
    for path, _, fitted in held:
        if not fitted.fits:
            continue
        planted = re.search(r'jitter = "(\d+)us"', path.settings["wire"])
        jitter_ns = 1000 * int(planted[1]) if planted else 0
        assert fitted.model.jitter_ns == pytest.approx(jitter_ns, rel=0.3, abs=150_000)
        for way in ("up", "down"):
            queue = fitted.model.queues[way]
            assert queue.rate_bps == pytest.approx(1000 * path.settings[way], rel=0.1)
            assert (queue.qdisc == "fq_codel") == path.is_managed


def test_a_shaper_does_what_the_model_predicts(held: list[tuple[lines.HiddenPath, Run, LineFit]]) -> None:
    tails, bounded = [], []
    for path, _, fitted in held:
        for phase in fitted.phases if fitted.fits else ():
            predicted = shaped(fitted, phase)
            if predicted is None:
                continue
            way = "up" if phase.kind == "upload" else "down"
            probes = path.simulated(way, predicted.kbit).probes
            during = pl.col("sent_ns").is_between(lines.IDLE_S * SECOND, (lines.IDLE_S + lines.LOADED_S) * SECOND)
            trips = probes.filter(during)["rtt_ns"]
            true_ms = [(trips.quantile(part, "linear") or 0) / 1e6 for part in (0.5, 0.95)]
            close = [pytest.approx(each, rel=PREDICTED, abs=CLOSE_MS) for each in true_ms]
            assert predicted.result.p50_ms == close[0], (path.settings, way)
            if predicted.tail == "number":
                tails.append(predicted.result.p95_ms == close[1])
            elif predicted.tail == "bounds" and predicted.p95_range_ms:
                shortest, longest = predicted.p95_range_ms
                bounded.append(shortest <= true_ms[1] <= longest)
            else:
                assert predicted.result.p95_ms is None
                assert predicted.lost_range[1] >= 1 - TAIL - NEAR
    print(f"numbers {sum(tails)} of {len(tails)}, bounds {sum(bounded)} of {len(bounded)}")
    assert tails
    assert sum(tails) >= TAILS * len(tails) - 1
    assert sum(bounded) >= BOUNDED * len(bounded) - 1


def test_a_percentile_that_is_not_known_is_no_number(held: list[tuple[lines.HiddenPath, Run, LineFit]]) -> None:
    fitted, made = next((fitted, made) for _, _, fitted in held if (made := shaped(fitted, fitted.phases[0])))
    one = PhaseResult(20.0, 60.0, {"down": 9.0}, 0.0)
    apart = replace(one, p95_ms=90.0)
    few, some, many = (replace(one, lost=lost) for lost in (0.02, 0.04, 0.08))
    cases: list[tuple[list[PhaseResult], str, float | None, str]] = [
        ([one, one, few], "number", 60.0, "would take 60 ms (round trip, p95) instead of"),
        ([one, one, apart], "bounds", 60.0, "would take 60 to 90 ms (round trip, p95) instead of"),
        ([one, one, some], "unknown", None, "20 ms (round trip, p50), by the model. It cannot tell their p95"),
        ([one, one, many], "unknown", None, "because 0.0 to 8.0 % of them are lost"),
        ([replace(many, p95_ms=None)] * 3, "lost", None, "because 8.0 to 8.0 % of them are lost"),
    ]
    for found, tail, p95_ms, said in cases:
        prediction = summarised(found)
        assert (prediction.tail, prediction.result.p95_ms) == (tail, p95_ms)
        whole = replace(
            made, **{field.name: getattr(prediction, field.name) for field in dataclasses.fields(Prediction)}
        )
        assert said in sentence(fitted, fitted.phases[0], whole)


def test_the_file_is_an_experiment_of_its_own(cli: Cli, tmp_path: Path) -> None:
    run = lines.measured(lines.hidden(FIRST), tmp_path / "results")
    answer = cli("model", str(run.path), "--json", "--phase", "upload")
    assert answer.status == 0, answer.err
    found = json.loads(answer.out)
    assert found["fits"]
    assert [phase["phase"] for phase in found["phases"]] == ["download", "upload"]
    made = load("model.toml")
    assert [entry["name"] for entry in made.points[0].scenario["traffic"]] == ["upload", "ping"]
    # The file has the modelled numbers.
    (simulated,) = bs.run("model.toml", out=tmp_path / "again").runs
    upload = found["phases"][1]["modelled"]["goodput_mbit"]["up"]
    assert simulated.metrics["goodput.total_mbit"] == pytest.approx(upload, rel=0.02)
    shown = cli("model", str(run.path), "--to", "other.toml").out
    for text in ("Measured and modelled", "Written: other.toml", "bufferscope choose other.toml --link line."):
        assert text in shown
    assert "not measured" in cli("model", str(run.path), "--phase", "both").err


def test_a_model_that_does_not_fit_says_so(cli: Cli, tmp_path: Path) -> None:
    # A queue whose delay never moves, as no tail-drop queue of these flows has it; and goodput that adds up to more.
    events = cures.events({"upload": "router_uplink"}, upload=9_000_000)
    for phase in events[-1]["verdict"]["phases"]:
        phase["numbers"]["loaded"] |= {"p50_ns": 12_000_000, "p95_ns": 900_000_000}
    run = read_events(b"".join(json.dumps(e).encode() + b"\n" for e in events).splitlines(), tmp_path / "results")
    answer = cli("model", str(run.path))
    assert answer.status == 1
    assert "The model does not fit" in answer.out
    assert "would take" not in answer.out, "it predicts nothing"


def test_a_run_without_a_load_has_no_model(tmp_path: Path) -> None:
    events = cures.events({})
    run = read_events(b"".join(json.dumps(e).encode() + b"\n" for e in events).splitlines(), tmp_path / "results")
    with pytest.raises(InputError, match="nothing was measured under load"):
        of_live(run)


def test_numbers_fit_within_a_tenth() -> None:
    assert fits(100.0, 109.9, 2.0)
    assert not fits(100.0, 110.2, 2.0)
    assert fits(0.3, 2.2, 2.0), "or within 2 ms"
    assert not fits(None, 100.0, 2.0), "a percentile among lost probes is not a number"
