"""The page on metrics, from their definitions."""

from bufferscope import metrics
from bufferscope.model import metric_definitions as definitions
from writing import table


def page() -> str:
    """The whole page."""
    rows = ((f"`{d['name']}`", d["unit"], d["meaning"], d["source"]) for d in metrics.describe().to_dicts())
    *_, details = (definitions.__doc__ or "").partition("\n\n")
    listed = table(["metric", "unit", "meaning", "from the records"], rows)
    return f"# Metrics\n\n{details.strip()}\n\n{listed.rstrip()}\n"
