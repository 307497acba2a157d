"""Completion: the words that the shell offers when the user presses Tab.

It runs while the user is typing, so it must be quick, and on any error it offers nothing. Texts from an experiment's
file end up on a command line, so anything that the shell could interpret is quoted or left out.
"""

import glob
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bufferscope.model.keys import Keys

INSTRUCTION = "_BUFFERSCOPE_COMPLETE"
"""The environment variable with which a shell asks for completion; its value names the shell."""
_BEFORE = "_BUFFERSCOPE_BEFORE"
"""The text before the word at the cursor that belongs to the same argument."""
_PLAIN = re.compile(r"[A-Za-z0-9_.,:/=>+-]*")
"""Characters that every shell takes as plain text."""
_LONGEST_VALUE = 60


def join_words(environment: MutableMapping[str, str]) -> None:
    """Join the words that bash has split at `=`: bash splits `--set a.b=c` into four words.

    Bash completes the text after the last `=`, so only that part of the word at the cursor stays. The part before it is
    stored for `complete_set` and `complete_point`.
    """
    if environment.get(INSTRUCTION) != "complete_bash" or "COMP_WORDS" not in environment:
        return
    words = environment["COMP_WORDS"].split("\n")[: int(environment.get("COMP_CWORD", "0")) + 1]
    joined: list[str] = []
    for number, word in enumerate(words):
        if number > 1 and "=" in (word, words[number - 1]):
            joined[-1] += word
        else:
            joined.append(word)
    if "=" in words[-2:]:
        before, equals, last = joined.pop().rpartition("=")
        if before.startswith("--"):
            option, _, before = before.partition("=")
            joined.append(option)
        environment[_BEFORE] = before + equals if before else ""
        joined.append(last)
    environment["COMP_WORDS"], environment["COMP_CWORD"] = "\n".join(joined), str(len(joined) - 1)


def _never_failing(
    complete: Callable[[typer.Context, str], Iterable[str]],
) -> Callable[[typer.Context, str], list[str]]:
    """Offer nothing if an error occurs: a user who presses Tab does not want to read about it."""

    @wraps(complete)
    def offered(context: typer.Context, incomplete: str) -> list[str]:
        try:
            return list(complete(context, incomplete))
        except Exception:
            return []

    return offered


@_never_failing
def complete_experiment(context: typer.Context, incomplete: str) -> Iterator[str]:
    """Names from the catalogue, and TOML files and directories that begin with what was typed."""
    from bufferscope.model.experiment import catalogue

    yield from (name for name in catalogue() if name.startswith(incomplete))
    for path in sorted(Path().glob(f"{glob.escape(incomplete)}*")):
        if path.is_dir():
            yield f"{path}/"
        elif path.suffix == ".toml":
            yield str(path)


@_never_failing
def complete_engine(context: typer.Context, incomplete: str) -> Iterator[str]:
    """Names of engines."""
    from bufferscope.engines import carrying

    yield from _beginning_with(incomplete, (each.name for each in carrying()))


@_never_failing
def complete_shell(context: typer.Context, incomplete: str) -> Iterator[str]:
    """Names of engines that have a shell."""
    from bufferscope.engines import carrying

    yield from _beginning_with(incomplete, (each.name for each in carrying() if each.shell))


@_never_failing
def complete_layout(context: typer.Context, incomplete: str) -> Iterator[str]:
    """How runs are stored."""
    from bufferscope.running.layout import LAYOUTS

    yield from _beginning_with(incomplete, LAYOUTS)


@_never_failing
def complete_kernel(context: typer.Context, incomplete: str) -> Iterator[str]:
    """Series and releases of the available kernels."""
    from bufferscope.engines.guest import kernels

    at_hand = kernels.at_hand()
    words = [kernel.series for kernel in at_hand] + [kernel.release for kernel in at_hand]
    yield from _beginning_with(incomplete, dict.fromkeys(words))


@_never_failing
def complete_set(context: typer.Context, incomplete: str) -> Iterator[str]:
    """Paths of the experiment's keys; or values, if the path is complete or only one path fits."""
    from bufferscope.model.overrides import as_texts

    keys = _keys(context)
    path, equals, _ = _whole(incomplete).partition("=")
    fitting = [path] if equals else [known for known in keys.paths() if known.startswith(path)]
    if len(fitting) > 1:
        yield from (f"{known}=" for known in fitting if _PLAIN.fullmatch(known))
        return
    for known in fitting:
        texts = [as_texts({known: value})[0] for value in keys.values(known) if not isinstance(value, list)]
        yield from _replies([*texts, f"{known}="] if len(texts) == 1 and not equals else texts, incomplete)
        if not texts and not equals:
            yield from _replies([f"{known}="], incomplete)


@_never_failing
def complete_point(context: typer.Context, incomplete: str) -> Iterator[str]:
    """The values of swept keys."""
    swept = _keys(context).swept()
    yield from _replies((f"{path}={label}" for path, labels in swept.items() for label in labels), incomplete)


def _keys(context: typer.Context) -> "Keys":
    """The keys of the experiment that is named earlier on the command line."""
    from bufferscope.model.experiment import read
    from bufferscope.model.keys import Keys

    # The option that is being completed has no value yet, so the arguments may not have been assigned.
    name = context.params["experiment"] or context.args[0]
    return Keys(read(name).decode())


def _beginning_with(incomplete: str, words: Iterable[str]) -> Iterator[str]:
    return (word for word in words if word.startswith(incomplete))


def _whole(incomplete: str) -> str:
    """The word at the cursor, with the part that the shell treats as a separate word."""
    return os.environ.get(_BEFORE, "") + incomplete


def _replies(texts: Iterable[str], incomplete: str) -> Iterator[str]:
    """The `PATH=VALUE` texts that begin with what was typed, in the form that the asking shell accepts."""
    is_bash = os.environ.get(INSTRUCTION, "complete_bash") == "complete_bash"
    for text in _beginning_with(_whole(incomplete), texts):
        path, _, value = text.partition("=")
        if not _PLAIN.fullmatch(path) or len(value) > _LONGEST_VALUE or not value.isprintable():
            continue
        if not _PLAIN.fullmatch(value):
            if not is_bash:
                continue
            value = shlex.quote(value)
        yield f"{path}={value}".removeprefix(os.environ.get(_BEFORE, ""))
