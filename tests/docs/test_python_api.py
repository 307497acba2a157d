"""docs/reference/python-api.md is complete: every public name, and of each function all parameters, results, errors."""

import ast
import inspect
import re
import sys
import textwrap
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


@every_function
def test_what_a_function_raises_itself_is_documented(name: str, function: Any) -> None:
    """Errors from functions that it calls are not seen here."""
    source = inspect.unwrap(getattr(function, "__func__", function))
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(source))).body
    raised = {
        node.exc.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and isinstance(node.exc.func, ast.Name)
    }
    documented = {error.rpartition(".")[2] for error in docstrings.parsed(function).items("Raises")}
    assert raised <= documented
    if inspect.isfunction(function) and hasattr(function, "__wrapped__"):
        assert "InputError" in documented, "the types of its arguments are checked"


def returned() -> Iterator[tuple[str, object]]:
    """What public functions, methods and attributes return, as they are annotated."""
    for name, function in functions():
        yield name, inspect.signature(function).return_annotation
    for owner in CLASSES:
        for name, member in inspect.getmembers(owner):
            found = member.fget if isinstance(member, property) else getattr(member, "func", None)
            if found and not name.startswith("_"):
                yield f"{owner.__name__}.{name}", found.__annotations__["return"]
        for name, annotation in inspect.get_annotations(owner).items():
            if not name.startswith("_"):
                yield f"{owner.__name__}.{name}", annotation


def test_everything_that_is_returned_is_exported() -> None:
    package = ROOT / "python" / "bufferscope"
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in package.rglob("*.py")]
    ours = {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    public = {*bs.__all__, *metrics.__all__}
    for name, annotation in returned():
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        assert ours.intersection(re.findall(r"\w+", text)) <= public, name


def test_every_closed_set_is_a_type_that_is_exported() -> None:
    """An argument is annotated with a type of the page, not with a list of strings of its own."""
    for name, function in functions():
        for parameter in python_api.parameters(function).values():
            assert "Literal[" not in python_api._type(parameter.annotation), f"{name}: {parameter}"


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
