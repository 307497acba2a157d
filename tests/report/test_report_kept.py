"""What pages keep in the user's cache: the second page makes neither the chart library nor the templates again."""

import zlib
from base64 import b64decode
from pathlib import Path
from typing import NoReturn

import jinja2
import pytest
import vl_convert

from bufferscope.report import printer, templating


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "bufferscope" / "pages"


def refused(*_arguments: object) -> NoReturn:
    raise AssertionError("made again")


def bundled(_snippet: str) -> str:
    return "the chart library"


def library() -> bytes:
    return zlib.decompress(b64decode(printer.carry_out(printer.CHART_LIBRARY)[0]))


def test_the_chart_library_is_bundled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundled)
    assert library() == b"the chart library"
    monkeypatch.setattr(vl_convert, "javascript_bundle", refused)
    assert library() == b"the chart library"


@pytest.mark.parametrize("kept_bytes", [7, 0])
def test_a_damaged_chart_library_is_made_again(cache: Path, kept_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundled)
    library()
    (file,) = cache.iterdir()
    file.write_bytes(file.read_bytes()[:kept_bytes])
    assert library() == b"the chart library"
    assert zlib.decompress(file.read_bytes()) == b"the chart library"


def test_templates_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    make = templating.environment.__wrapped__  # each is as in a new process
    make().get_template("frame.html.jinja")
    monkeypatch.setattr(jinja2.Environment, "compile", refused)
    make().get_template("frame.html.jinja")


def test_a_changed_template_is_compiled_again() -> None:
    loader = jinja2.DictLoader({"page": "old"})
    environment = templating.environment.__wrapped__().overlay(cache_size=0)
    environment.loader = loader
    assert environment.get_template("page").render() == "old"
    loader.mapping = {"page": "new"}
    assert environment.get_template("page").render() == "new"
