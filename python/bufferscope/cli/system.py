"""`bufferscope schema` and `bufferscope doctor`."""

from typing import Annotated

import typer

from bufferscope.base.errors import InputError
from bufferscope.cli import options

FORMATS = ("experiment", "run", "tables")


def schema(
    of: Annotated[
        str,
        typer.Option(
            "--of",
            metavar="NAME",
            help="experiment: experiment files; run: the run.json of a stored run; tables: the kinds of "
            "the columns of its tables (not a JSON Schema).",
        ),
    ] = "experiment",
) -> None:
    """Print the JSON Schema of experiment files, or of stored runs.

    An editor that has the schema completes keys and marks mistakes as you type:

      bufferscope schema > bufferscope.schema.json

    and, as the experiment file's first line, [bold]#:schema ./bufferscope.schema.json[/bold]
    """
    if of not in FORMATS:
        raise InputError(f"--of: found {of!r}; allowed: {', '.join(FORMATS)}")
    if of == "experiment":
        from bufferscope._core import schema as text

        print(text())
        return
    from bufferscope.cli.documents import print_document
    from bufferscope.store import metadata, tables

    print_document(metadata.schema() if of == "run" else tables.schema())


def doctor(json: options.Json = False) -> None:
    """Show what each engine needs, what is missing, and the one command that installs it.

    The checks are real: the emulator is started, and the kernel is asked for every queueing discipline. Nothing is \
installed or changed. An engine that is [bold]limited[/bold] works, but not for every experiment.
    """
    from bufferscope.base import machine
    from bufferscope.cli import diagnoses
    from bufferscope.engines.doctor.examining import examine

    about, found = machine.describe(), examine()
    if json:
        from bufferscope.cli.documents import print_document

        print_document({"machine": about, "engines": [diagnoses.document(each) for each in found]})
    else:
        print(f"{about['cpus']} x {about['cpu']}, {about['system']} {about['release']}, {about['machine']}")
        for each in found:
            diagnoses.print_diagnosis(each)
