"""Names of a package that are loaded when they are first used, so that importing the package is fast."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from sys import modules
from typing import Any


def names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The `__getattr__` of a package (PEP 562).

    `homes` maps each public name to its module, relative to the package or from `bufferscope` on; a name that maps to
    itself is a module.
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(homes[name] if homes[name].startswith("bufferscope.") else f"{package}.{homes[name]}")
        value: object = home if homes[name] == name else getattr(home, name)
        setattr(modules[package], name, value)
        return value

    return load


@dataclass(frozen=True)
class Function:
    """A function or class, whose module is imported when it is called; unlike a closure, it can be pickled."""

    home: str
    """Its module and its name, as in `"bufferscope.report:build"`."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call it."""
        return self.found(*arguments, **options)

    @property
    def found(self) -> Callable[..., Any]:
        """The function itself."""
        module, _, name = self.home.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function


class Library:
    """Another project's module, which is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        """Name the module."""
        self._name = name

    def __getattr__(self, name: str) -> object:
        value: object = getattr(import_module(self._name), name)
        vars(self)[name] = value
        return value
