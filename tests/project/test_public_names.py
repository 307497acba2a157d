"""The names of packages that load them when they are first used."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "python" / "bufferscope"
PACKAGES = ("bufferscope", "bufferscope.studies.agreement", "bufferscope.studies.comparison", "bufferscope.metrics")


@pytest.mark.parametrize("name", PACKAGES)
def test_the_public_names_are_those_that_can_be_loaded(name: str) -> None:
    package = import_module(name)
    assert sorted(package.__all__) == sorted(package._HOMES)
    for public in package.__all__:
        assert getattr(package, public) is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        import_module(name).nothing  # noqa: B018


def test_a_class_has_a_name_of_its_own() -> None:
    """A name that means two classes in two modules has to be looked up each time it is read."""
    modules: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}
