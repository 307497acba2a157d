"""The names of packages that load them when they are first used."""

from importlib import import_module

import pytest

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
