"""docs/reference/python-api.md is complete: every public name, and of each function all parameters, results, errors."""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bufferscope as bs
from bufferscope import figures, metrics, report

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "reference"))

import docstrings  # noqa: E402
import python_api  # noqa: E402

PAGE = (ROOT / "docs" / "reference" / "python-api.md").read_text(encoding="utf-8")
CLASSES = [*(owner for group in python_api.CLASSES.values() for owner in group), *python_api.OF_METRICS]


def functions() -> Iterator[tuple[str, Any]]:
    """Every public function, and every public method and constructor of the classes of the page."""
    for function in (*python_api.FUNCTIONS, *python_api.METRICS, report.build, figures.draw):
        yield function.__name__, function
    for owner in CLASSES:
        for method in python_api.methods(owner):
            if method.__name__ != "__init__" or owner.__name__ in bs.__all__:
                yield f"{owner.__name__}.{method.__name__}", method


every_function = pytest.mark.parametrize(
    ("name", "function"), [pytest.param(*each, id=each[0]) for each in functions()]
)


def test_every_public_name_is_on_the_page() -> None:
    names = [*bs.__all__, *metrics.__all__, *figures.NAMES, "draw", "build"]
    assert [name for name in names if not re.search(rf"\b{name}\b", PAGE)] == []


@every_function
def test_a_function_has_every_parameter_and_no_other(name: str, function: Any) -> None:
    documented = docstrings.parsed(function).items("Parameters")
    assert list(documented) == list(python_api.parameters(function))
    assert all(documented.values()), "each has a meaning"


@every_function
def test_a_function_says_what_it_returns(name: str, function: Any) -> None:
    docstring = docstrings.parsed(function)
    assert docstring.summary
    returned = inspect.signature(function).return_annotation
    returns = {**docstring.items("Returns"), **docstring.items("Yields")}
    assert bool(returns) == (returned not in (None, "None"))


@pytest.mark.parametrize("function", python_api.FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_says_which_errors_it_raises(function: Any) -> None:
    if function is not bs.catalogue:
        assert set(docstrings.parsed(function).items("Raises")) & {"InputError", "StoreError", "ExperimentError"}


@pytest.mark.parametrize("owner", CLASSES, ids=lambda owner: owner.__name__)
def test_an_attribute_has_a_meaning(owner: type) -> None:
    assert docstrings.parsed(owner).summary
    assert [name for name, text in python_api.attributes(owner).items() if not text] == []


def test_the_page_shows_sections_as_they_are_written() -> None:
    """A parameter, a result, an error and an example of one function, by hand."""
    (section,) = re.findall(r"^### `bs\.load`$(.*?)^### ", PAGE, re.MULTILINE | re.DOTALL)
    assert "| `newest` | `bool` | `False` | Only the runs of the same variant as the newest run. |" in section
    assert "- `Result`: The runs, in the order of the experiment's points." in section
    assert "- `StoreError`: There is no run at this path" in section
    assert '>>> bs.load("results/ucas-reproduce", overrides=["link.bottleneck.queue.limit=20p"])\n```' in section
