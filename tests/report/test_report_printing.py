"""Pictures beside a page: separate processes draw them, and they are complete with the page, even if they die."""

import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from bufferscope.figures import pictures
from bufferscope.report import printer, printing
from bufferscope.report.printer import Order

PNG = b"\x89PNG"
HEADING = "One bar"
SPEC: dict[str, Any] = {
    "title": {"text": HEADING},
    "data": {"values": [{"x": 1}]},
    "layer": [{"mark": "bar", "encoding": {"x": {"field": "x", "type": "quantitative"}}}],
}


def check(svgs: list[Path]) -> None:
    assert svgs
    for svg in svgs:
        assert HEADING in svg.read_text()
        assert svg.with_suffix(".png").read_bytes().startswith(PNG)


def standing_in(path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Let the process run another program."""
    path.write_text(program)
    monkeypatch.setattr(printer, "__file__", str(path))


def carried_out_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pictures that this process draws from now on."""
    made: list[str] = []
    original = printer.carry_out

    def carry_out(order: Order) -> list[str]:
        made.append(Path(order["svg"] if "spec" in order else order["png"]).name)
        return original(order)

    monkeypatch.setattr(printer, "carry_out", carry_out)
    return made


def test_pictures_are_there_when_the_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = carried_out_here(monkeypatch)
    svgs = [tmp_path / f"{number}.svg" for number in range(3)]
    with printing.beside(stills=True):
        stills = [printing.draw(SPEC, svg) for svg in svgs]
    check(svgs)
    for still in stills:
        assert still is not None
        assert still.result().startswith("<svg")
        assert HEADING not in still.result()
    assert not here


def test_nothing_is_drawn_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printing.chart_library()  # so that it is no order
    here = carried_out_here(monkeypatch)
    svg = tmp_path / "figures" / "figure.svg"
    with printing.beside(stills=False):
        assert printing.draw(SPEC, svg) is None
    assert printing.draw(SPEC, svg) is None
    assert not svg.parent.exists()
    assert not here


def test_a_picture_is_the_chart_as_such(tmp_path: Path) -> None:
    svg = tmp_path / "figure.svg"
    with printing.beside(stills=True):
        drawn = printing.draw(SPEC, svg)
    assert drawn is not None
    without = drawn.result()
    assert svg.read_text() == pictures.svg(SPEC)
    assert without == pictures.svg({key: value for key, value in SPEC.items() if key != "title"})


def test_what_the_process_cannot_do_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    standing_in(tmp_path / "dead.py", monkeypatch, "raise SystemExit(3)")
    svgs = [tmp_path / f"{number}.svg" for number in range(2)]
    with printing.beside(stills=True):
        for svg in svgs:
            printing.draw(SPEC, svg)
        assert b"vegaEmbed" in zlib.decompress(b64decode(printing.chart_library()))
    check(svgs)


def test_only_what_is_missing_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printing.chart_library()  # so that it is no order
    program = Path(printer.__file__).read_text()
    standing_in(tmp_path / "weak.py", monkeypatch, program.replace("in sys.stdin:", "in [sys.stdin.readline()]:"))
    here = carried_out_here(monkeypatch)
    svgs = [tmp_path / f"{number}.svg" for number in range(3)]
    with printing.beside(stills=True):
        for svg in svgs:
            printing.draw(SPEC, svg)
    check(svgs)
    assert sorted(here) == ["1.png", "1.svg", "2.png", "2.svg"]


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    directory = tmp_path / "figure.svg"
    directory.mkdir()
    with pytest.raises(IsADirectoryError), printing.beside(stills=True):
        printing.draw(SPEC, directory)


def test_an_error_in_the_block_ends_the_process(tmp_path: Path) -> None:
    svg = tmp_path / "figure.svg"

    def fail() -> None:
        with printing.beside(stills=True):
            printing.draw(SPEC, svg)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert printing.draw(SPEC, svg) is None, "its block has ended"
