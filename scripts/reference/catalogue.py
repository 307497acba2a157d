"""The page on the catalogue, from its experiments."""

from bufferscope.model.expectations import ExpectationEntry
from bufferscope.model.experiment import catalogue, load
from writing import heading, table

INTRODUCTION = """\
# The catalogue

This page lists the experiments of bufferscope, with the statements of the documents that they reproduce. The report of
`make reproduce` has the measurements, and whether they lie in the bands. See also [how the bands were
chosen](../bands.md).

"""


def page() -> str:
    """The whole page."""
    return INTRODUCTION + "".join(_experiment(name) for name in catalogue()).rstrip() + "\n"


def _experiment(name: str) -> str:
    experiment = load(name)
    document = experiment.document
    rows = (
        (expect["says"], f"`{expect['metric']}`", _points(expect), _band(*expect["band"]))
        for expect in experiment.expectations
    )
    return (
        heading(2, name)
        + f"**{document['title']}.** {(document['description'] or '').strip()}\n\n"
        + f"Source: {document['source']}.\n\n"
        + table(["the document says", "metric", "at", "band"], rows)
    )


def _points(expect: ExpectationEntry) -> str:
    """The points an expectation is about, by their labels."""
    at = ", ".join(str(label) for label in (expect.get("where") or {}).values())
    beside = ", ".join(str(label) for label in (expect.get("relative_to") or {}).values())
    return f"{at}, divided by {beside}" if beside else at


def _band(low: float | None, high: float | None) -> str:
    """A band; JSON has no infinity, so an open end is null."""
    if high is None:
        return f"at least {low:g}"
    return f"at most {high:g}" if low is None else f"{low:g} to {high:g}"
