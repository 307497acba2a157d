"""docs/gallery.md has every figure: with its picture, and the calls that draw it."""

import re
import sys
from pathlib import Path

import pytest

from bufferscope import figures

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "gallery.md"
PICTURES = ROOT / "docs" / "pictures" / "gallery"
sys.path.insert(0, str(ROOT / "scripts"))

import gallery  # noqa: E402

LARGEST_BYTES = 1_500_000


def sections() -> dict[str, str]:
    _, *parts = re.split(r"^### `(\w+)`$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_figure_is_on_the_page_and_can_be_drawn_again() -> None:
    assert sorted(sections()) == sorted(figures.NAMES) == sorted(gallery.FIGURES)


@pytest.mark.parametrize("name", figures.NAMES)
def test_a_figure_has_its_picture_and_both_calls(name: str) -> None:
    text = sections()[name]
    assert f"(pictures/gallery/{name}.svg)" in text
    assert f'figures = ["{name}"]' in text
    assert f"bs.figures.{name}(result)" in text
    assert (PICTURES / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg")


def test_the_pictures_are_small_and_all_are_shown() -> None:
    files = list(PICTURES.iterdir())
    assert {path.stem for path in files} == set(figures.NAMES)
    assert sum(path.stat().st_size for path in files) < LARGEST_BYTES


def test_a_picture_is_drawn_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gallery, "DIRECTORY", tmp_path)
    monkeypatch.setitem(gallery.FIGURES, "rtt", gallery.Shown("ucas-reproduce", {"duration": "2s"}))
    gallery.main(["rtt"])
    assert (tmp_path / "rtt.svg").read_text(encoding="utf-8").startswith("<svg")
    assert len(list(tmp_path.iterdir())) == 1
