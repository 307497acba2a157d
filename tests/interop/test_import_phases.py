"""Pings that go from an idle path to a loaded one are measured apart, and only those."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from laboratory import Answer

from bufferscope.analysis.explanation import Cause, explain_run
from bufferscope.base.fmt import NBSP
from bufferscope.interop.importing.conversion import import_file
from bufferscope.store.run import Run

Cli = Callable[..., Answer]


def _log(levels: Sequence[tuple[float, int]], lost: Sequence[int] = ()) -> str:
    """Pings of each level in ms, one a second, varied by a tenth."""
    varied = random.Random(1)
    lines = ["PING h (192.0.2.1) 56(84) bytes of data."]
    for seq, level in enumerate((ms for ms, count in levels for _ in range(count)), start=1):
        ms = level * varied.uniform(0.95, 1.05)
        if seq not in lost:
            lines.append(
                f"[{1_700_000_000 + seq + ms / 1000:.6f}] 64 bytes from h: icmp_seq={seq} ttl=57 time={ms:.2f} ms"
            )
    return "\n".join(lines)


def _imported(directory: Path, text: str) -> Run:
    (directory / "ping.txt").write_text(text)
    return import_file(directory / "ping.txt", directory / "results")


@pytest.mark.parametrize(
    ("levels", "loaded", "idle"),
    [
        ([(20, 30), (640, 30)], 30, 30),
        ([(20, 30), (640, 30), (20, 30)], 30, 60),
        ([(640, 30), (20, 30)], 30, 30),
        ([(3, 30), (25, 30)], 30, 30),
    ],
    ids=["to load", "and back", "from load", "fast line"],
)
def test_idle_and_loaded_are_measured_apart(
    tmp_path: Path, levels: list[tuple[float, int]], loaded: int, idle: int
) -> None:
    run = _imported(tmp_path, _log(levels))
    assert (run.metrics["rtt.sent"], run.metrics["idle.sent"]) == (loaded, idle)
    low, high = sorted({ms for ms, _ in levels})
    assert run.metrics["rtt.p50_ms"] == pytest.approx(high, rel=0.05)
    assert run.metrics["idle.p50_ms"] == pytest.approx(low, rel=0.05)
    assert any("(medians) from" in warning and "as under load" in warning for warning in run.warnings)
    assert run.meta["tables"]["probes"] == loaded + idle


def test_the_verdict_compares_with_the_idle_path(tmp_path: Path) -> None:
    found = explain_run(_imported(tmp_path, _log([(20, 30), (640, 30)])))
    assert found.cause is Cause.QUEUE
    assert found.verdict.replace(NBSP, " ").startswith(
        "The RTT rises from 30 s on, as if a load filled a queue: the median RTT is 62"
    )


@pytest.mark.parametrize(
    "levels",
    [[(20, 60)], [(640, 60)], [(20, 30), (25, 30)], [(20, 3), (640, 2)] * 10, [(20, 3), (640, 3)]],
    ids=["idle", "loaded", "nearly the same", "to and fro", "too few"],
)
def test_other_pings_have_no_phases(tmp_path: Path, levels: list[tuple[float, int]]) -> None:
    run = _imported(tmp_path, _log(levels))
    assert run.metrics["rtt.sent"] == sum(count for _, count in levels)
    assert "idle.sent" not in run.metrics
    assert explain_run(run).verdict.startswith("Cannot tell:")


def test_all_targets_must_show_the_load(tmp_path: Path) -> None:
    rising = [20.0] * 20 + [640.0] * 20
    columns = {"192.0.2.1": rising, "192.0.2.2": rising, "192.0.2.3": [20.0] * 40}
    lines = [f"{host} : {' '.join(map(str, rtts))}" for host, rtts in columns.items()]
    assert _imported(tmp_path, "\n".join(lines[:2])).metrics["idle.sent"] == 40
    assert "idle.sent" not in _imported(tmp_path, "\n".join(lines)).metrics


def test_an_outage_is_no_load(tmp_path: Path) -> None:
    run = _imported(tmp_path, _log([(20, 60)], lost=range(20, 50)))
    assert (run.metrics["rtt.sent"], run.metrics["rtt.lost"]) == (60, 30)


def test_import_draws_a_page_and_says_what_to_type_next(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evening.txt").write_text(_log([(20, 10), (640, 10)]))
    shown = cli("import", "evening.txt").out.replace(NBSP, " ")
    assert shown.startswith("evening: The RTT rises from 10 s on")
    command = "bufferscope size --rate RATE --rtt 19.1ms"
    assert f"Next: {command}\nWith the RATE of your line" in shown
    page = Path("report/evening/index.html").read_text().replace(NBSP, " ")
    begin = page.index("The RTT rises from 10 s on")
    assert begin < page.index("idle.p50_ms") < page.index(command) < page.index("Round-trip time")
    assert "The page" not in cli("import", "evening.txt", "--no-report").out
    assert cli("import", "evening.txt", "--no-report", "--report", "page").status == 2
