"""`scripts/flent/against_flent.py`: what is read in files of Flent, held against what Flent prints of them."""

from pathlib import Path

import pytest
from flentfiles import before_version_4, content, pings, rates, transactions, write

import against_flent
from against_flent import compare, main, parsed, spread

SUMMARY = """
Summary of tcp_download test run from 2026-01-01 00:00:00

                             avg       median          # data pts
 Ping (ms) ICMP   :        50.00        50.00        50.00 ms              100
 TCP download sum :         8.00          N/A          N/A Mbits/s         100
 TCP upload       : No data.
"""


def test_a_summary_of_flent_is_parsed() -> None:
    found = parsed(SUMMARY)
    assert list(found) == ["Ping (ms) ICMP", "TCP download sum"]
    assert found["Ping (ms) ICMP"] == (50, 50, 50)
    assert found["TCP download sum"][0] == 8


def test_flent_and_bufferscope_agree_on_an_old_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = {
        "Ping (ms) ICMP": pings(20, 50),
        "Ping (ms) UDP BE1": transactions(25.0),
        "TCP download BE": rates(8),
        "TCP upload BE": rates(3),
    }
    write(tmp_path, before_version_4(content("rrul_be", series), 3), "old.flent.gz")
    write(tmp_path, {}, "broken.flent.gz")
    main([str(tmp_path), "--each"])
    printed = capsys.readouterr().out
    assert "broken.flent.gz: metadata: found nothing; expected an object" in printed
    assert "| rrul_be, version 3 | 1 | 0 | 2 of 2 | 1 of 1 | 2 of 2 | 2 of 2 | 2 of 2 |" in printed


def test_a_difference_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against_flent, "summary", lambda *_: {"TCP download": (8.2, 8.2, 8.2)})
    found = compare(write(tmp_path, content("tcp_download", {"TCP download": rates(8)})), tmp_path / "results")
    assert [(pair.quantity, pair.agrees) for pair in found.pairs] == [("goodput", False), ("total", False)]


def test_a_sample_of_files_is_evenly_spread() -> None:
    files = [Path(str(n)) for n in range(10)]
    assert spread(files, None) == files
    assert [file.name for file in spread(files, 3)] == ["0", "3", "6"]
