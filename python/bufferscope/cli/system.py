"""`bufferscope schema` and `bufferscope doctor`."""

from bufferscope.cli import options


def schema() -> None:
    """Print the JSON Schema of experiment files.

    An editor that knows it completes keys and marks mistakes while one types:

      bufferscope schema > bufferscope.schema.json

    and, as the experiment file's first line, [bold]#:schema ./bufferscope.schema.json[/bold]
    """
    from bufferscope._core import schema as text

    print(text())


def doctor(json: options.Json = False) -> None:
    """Tell what this machine can do, engine by engine, and what is missing for the rest."""
    from bufferscope.doctor import examine

    findings = examine()
    if json:
        from bufferscope.cli.documents import print_document

        print_document([{"what": f.what, "state": f.state, "details": f.details} for f in findings])
    else:
        from bufferscope.cli.tables import print_rows

        print_rows(
            "What this machine can do", ("", "State", "Details"), [(f.what, f.state, f.details) for f in findings]
        )
