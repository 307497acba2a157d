"""PNGs beside a page: made by a process of their own, all there when the page is, whatever becomes of that process."""

from pathlib import Path

import pytest

from bufferscope.report import printing

SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="10" height="10"/></svg>'
PNG = b"\x89PNG"


def pictures(directory: Path, number: int) -> list[tuple[Path, Path]]:
    files = [directory / f"{each}.svg" for each in range(number)]
    for file in files:
        file.write_text(SVG)
    return [(file, file.with_suffix(".png")) for file in files]


def test_pictures_are_there_when_the_block_ends(tmp_path: Path) -> None:
    asked = pictures(tmp_path, 5)
    with printing.beside():
        for svg, png in asked:
            printing.png(svg, png)
    assert all(png.read_bytes().startswith(PNG) for _, png in asked)


def test_outside_of_a_block_a_picture_is_made_at_once(tmp_path: Path) -> None:
    ((svg, png),) = pictures(tmp_path, 1)
    printing.png(svg, png)
    assert png.read_bytes().startswith(PNG)


def test_what_the_process_cannot_do_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printing, "_CONVERT", "raise SystemExit(3)")
    asked = pictures(tmp_path, 2)
    with printing.beside():
        for svg, png in asked:
            printing.png(svg, png)
    assert all(png.read_bytes().startswith(PNG) for _, png in asked)


def test_an_error_in_the_block_ends_the_process(tmp_path: Path) -> None:
    ((svg, png),) = pictures(tmp_path, 1)

    def fail() -> None:
        with printing.beside():
            printing.png(svg, png)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    printing.png(svg, png)
    assert png.read_bytes().startswith(PNG), "pictures are made at once again"
