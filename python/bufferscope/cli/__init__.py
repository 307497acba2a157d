"""The command line: argument handling and printing, nothing else.

Exit status: 0 done; 1 an engine failed, the disk is full, standard output cannot be written, or with `--strict` an
expectation is not reproduced; 2 wrong usage or a bad file; 130 interrupted. Results go to standard output, all other
messages to standard error.
"""

import errno
import functools
import gc
import os
import sys
from collections.abc import Callable, Sequence

import typer

from bufferscope.base import streams
from bufferscope.base.errors import EngineError, ExperimentError, InputError, printable
from bufferscope.cli.app import app
from bufferscope.cli.completion import join_words
from bufferscope.cli.interruption import CutShortError

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that a correctly named file can still cause."""


GARBAGE_THRESHOLDS = 50_000, 20, 100
"""When Python looks for cycles of garbage: more seldom than by default. The metadata of many runs are millions of
containers without cycles, and looking at all of them again and again took half of the time of reading them."""


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status; errors are reported on standard error."""
    join_words(os.environ)
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    try:
        _check_encoding(arguments)
        status = _command()(list(arguments), prog_name="bufferscope", standalone_mode=False) or DONE
        sys.stdout.flush()
        return status
    except typer.TyperException as error:
        return _complain(f"{error.format_message()} ({_help_for(error)})", WRONG_USAGE)
    except ExperimentError as error:
        return _complain_of_all(str(error).split("\n"), WRONG_USAGE)
    except InputError as error:
        return _complain(str(error), WRONG_USAGE)
    except EngineError as error:
        return _complain(str(error), FAILED)
    except CutShortError as error:
        return _complain(str(error), INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has exited, as in `bufferscope list | head -1`.
        streams.give_up_output()
        return FAILED
    except OSError as error:
        return _complain_of_a_file(error)
    except UnicodeEncodeError as error:
        return _complain(f"found {error.object!r:.200}, which is not UTF-8; allowed: text", WRONG_USAGE)


@functools.cache
def _command() -> Callable[..., int | None]:
    """All commands with their options. Typer would collect them anew for each call, which takes 20 ms."""
    return typer.main.get_command(app)


def _help_for(error: typer.TyperException) -> str:
    """Where to find help; an option that `shell` does not know usually belongs to the program it runs."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "bufferscope"
    if path == "bufferscope shell" and hasattr(error, "option_name"):
        return "put the program's own options after --, as in bufferscope shell lab.toml --on h1 -- ls -l"
    return f"see {path} --help"


def _check_encoding(arguments: Sequence[str]) -> None:
    """Refuse arguments that are not UTF-8 before anything is done, except those of the program that `shell` runs."""
    for argument in arguments if arguments[:1] != ["shell"] else ():
        argument.encode()


def _complain_of_a_file(error: OSError) -> int:
    """Report an error of a file (too long a name, no permission to read it, a full disk) or of standard output."""
    is_lost = error.filename == streams.OUTPUT
    if is_lost:
        streams.give_up_output()
    name = f"{error.filename}: " if error.filename is not None else ""
    return _complain(f"{name}{error.strerror or error}", FAILED if is_lost or error.errno in _FULL else WRONG_USAGE)


def _complain(message: str, status: int) -> int:
    """Report an error on one line, whatever the message contains."""
    return _complain_of_all([" ".join(message.split())], status)


def _complain_of_all(lines: Sequence[str], status: int) -> int:
    """Report errors, one line each."""
    for line in lines:
        print("bufferscope:", printable(line), file=sys.stderr)
    return status
