"""Check the arguments of public functions: a value of a wrong type is one clear error, not a traceback from inside."""

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from os import PathLike
from typing import NamedTuple, ParamSpec, TypeVar

from bufferscope.base.errors import ExperimentError, InputError

P = ParamSpec("P")
R = TypeVar("R")


class ArgumentKind(NamedTuple):
    """What an argument may be."""

    words: str
    """In words, for the message."""
    fits: Callable[[object], bool]


def _is_path(value: object) -> bool:
    """Whether it names a file; a directory's or a file's name has at most 255 bytes on every common file system."""
    if not isinstance(value, str | PathLike):
        return False
    path = os.fspath(value)
    if not isinstance(path, str):
        return False
    try:
        names = os.fsencode(path).split(b"/")
    except UnicodeEncodeError:
        return False
    return b"\0" not in b"/".join(names) and max(map(len, names)) <= 255


def _are_names(value: object) -> bool:
    names = [value] if isinstance(value, str) else value
    return isinstance(names, Sequence) and bool(names) and all(isinstance(name, str) for name in names)


def _are_texts(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(each, str) for each in value)


def _is_watcher(value: object) -> bool:
    return value is None or all(callable(getattr(value, name, None)) for name in ("advanced", "finished"))


PATH = ArgumentKind("a path, as a string or a pathlib.Path", _is_path)
EXPERIMENT = ArgumentKind(
    "a name from the catalogue, or the path of a TOML file", lambda value: isinstance(value, str | PathLike)
)
OVERRIDES = ArgumentKind(
    "a list of PATH=VALUE strings, or a dict of values by path",
    lambda value: isinstance(value, Mapping | Iterable) and not isinstance(value, bytes),
)
NAMES = ArgumentKind("a name, or a list of names", _are_names)
NAME = ArgumentKind("a string", lambda value: isinstance(value, str))
STRINGS = ArgumentKind("a list of strings", _are_texts)
PATHS = ArgumentKind(
    "paths, as strings or pathlib.Path", lambda value: isinstance(value, tuple) and all(map(_is_path, value))
)
NUMBER = ArgumentKind("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool))
FLAG = ArgumentKind("True or False", lambda value: isinstance(value, bool))
WATCHER = ArgumentKind("an object with the methods advanced and finished, or None", _is_watcher)


def optional(kind: ArgumentKind) -> ArgumentKind:
    """The kind, or None."""
    return ArgumentKind(f"{kind.words}, or None", lambda value: value is None or kind.fits(value))


_OPTION = re.compile(r"(`[^`]*`)|--([a-z]+)\b(?!-)")
_ARGUMENTS = {"set": "overrides", "down": "down_mbit", "up": "up_mbit", "phase": "loaded"}
"""Options of the command line whose arguments in Python are called otherwise."""


def in_python(message: str) -> str:
    """A message about options in terms of arguments; commands in backticks stay as they are.

    >>> in_python("--set a=1: found b; `bufferscope run --set a=2` works, --jobs 2 does not")
    'overrides a=1: found b; `bufferscope run --set a=2` works, jobs 2 does not'
    """
    return _OPTION.sub(lambda found: found[1] or _ARGUMENTS.get(found[2], found[2]), message)


def checked(**kinds: ArgumentKind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function: `InputError` names the argument that is not of its kind, what was found and what is allowed.

    Messages from inside the function, which speak of the options of the command line, name the arguments as well.

    >>> @checked(out=PATH)
    ... def save(out): ...
    >>> save(5)
    Traceback (most recent call last):
    bufferscope.base.errors.InputError: out: found 5; allowed: a path, as a string or a pathlib.Path
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            given = signature.bind(*args, **kwargs).arguments
            for name, kind in kinds.items():
                if name in given and not kind.fits(given[name]):
                    raise InputError(f"{name}: found {given[name]!r:.60}; allowed: {kind.words}")
            try:
                return function(*args, **kwargs)
            except (InputError, ExperimentError) as error:
                error.args = (in_python(str(error)), *error.args[1:])
                raise

        return call

    return decorate
