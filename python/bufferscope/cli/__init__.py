"""The command line: argument handling and printing, nothing else.

Exit status: 0 done; 1 an engine failed, or with `--strict` an expectation is not reproduced; 2 wrong usage or a bad
file; 130 interrupted. Results go to standard output, everything said on the way to standard error.
"""

import os
import sys
from collections.abc import Sequence

import typer

from bufferscope.cli.app import app
from bufferscope.cli.completion import join_words
from bufferscope.cli.interruption import CutShortError
from bufferscope.errors import EngineError, ExperimentError, InputError, printable

DONE, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status; mistakes are told on standard error."""
    join_words(os.environ)
    try:
        status = app(list(arguments), prog_name="bufferscope", standalone_mode=False) or DONE
        sys.stdout.flush()
        return status
    except typer.TyperException as error:
        return _complain(f"{error.format_message()} (see bufferscope --help)", WRONG_USAGE)
    except ExperimentError as error:
        return _complain_of_all(str(error).split("\n"), WRONG_USAGE)
    except InputError as error:
        return _complain(str(error), WRONG_USAGE)
    except EngineError as error:
        return _complain(str(error), FAILED)
    except CutShortError as error:
        return _complain(str(error), INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone, as in `bufferscope list | head -1`: the interpreter must not flush to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _complain(message: str, status: int) -> int:
    """Say what is wrong, in one line whatever the message holds."""
    return _complain_of_all([" ".join(message.split())], status)


def _complain_of_all(lines: Sequence[str], status: int) -> int:
    """Say what is wrong, in one line each."""
    for line in lines:
        print("bufferscope:", printable(line), file=sys.stderr)
    return status
