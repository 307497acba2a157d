"""`bufferscope schema` and `bufferscope doctor`."""

from bufferscope.cli import options


def schema() -> None:
    """Print the JSON Schema of experiment files.

    An editor that has the schema completes keys and marks mistakes as you type:

      bufferscope schema > bufferscope.schema.json

    and, as the experiment file's first line, [bold]#:schema ./bufferscope.schema.json[/bold]
    """
    from bufferscope._core import schema as text

    print(text())


def doctor(json: options.Json = False) -> None:
    """Show what each engine needs, what is missing, and the one command that installs it.

    The checks are real: the emulator is started, and the kernel is asked for every queueing discipline. Nothing is \
installed or changed. An engine that is [bold]limited[/bold] works, but not for every experiment.
    """
    from bufferscope import machine
    from bufferscope.cli import diagnoses
    from bufferscope.doctor import examine

    about, found = machine.describe(), examine()
    if json:
        from bufferscope.cli.documents import print_document

        print_document({"machine": about, "engines": [diagnoses.document(each) for each in found]})
    else:
        print(f"{about['cpus']} x {about['cpu']}, {about['system']} {about['release']}, {about['machine']}")
        for each in found:
            diagnoses.print_diagnosis(each)
