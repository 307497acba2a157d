"""The output of `--json`: exactly one document on standard output."""

import codecs
import json
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bufferscope.base.strict_json import finite
from bufferscope.metrics import Estimate, Metrics
from bufferscope.results.result import Result
from bufferscope.results.verdicts import ExpectationResult
from bufferscope.store.run import Run
from bufferscope.studies.agreement import Agreement, MetricComparison

if TYPE_CHECKING:
    from bufferscope.studies.comparison import Comparison
    from bufferscope.studies.comparison.comparing import Difference


def print_document(document: object) -> None:
    """Print a JSON document; JSON has no infinity, so the document must not contain one.

    If standard output is not UTF-8, all characters but ASCII are written as JSON escapes.
    """
    is_utf8 = codecs.lookup(sys.stdout.encoding or "ascii").name == "utf-8"
    text = json.dumps(document, indent=2, ensure_ascii=not is_utf8, allow_nan=False)
    # What JSON itself does not escape: other control characters, and those that turn the direction of writing.
    print(text if _is_plain(text) else "".join(_escaped(c) for c in text))


def _is_plain(text: str) -> bool:
    """Whether no character but the line end controls a terminal."""
    return text.replace("\n", "").isprintable()


def _escaped(character: str) -> str:
    return character if character == "\n" or character.isprintable() else json.dumps(character)[1:-1]


def result_document(result: Result, elsewhere: Sequence[ExpectationResult] = ()) -> dict[str, object]:
    """A result: its runs with their metrics, and its expectations, also as other runs judge them (`elsewhere`)."""
    return {
        "experiment": result.experiment,
        "runs": _run_documents(result.runs),
        "expectations": [_expectation_document(evaluated) for evaluated in [*result.expectations, *elsewhere]],
    }


def agreement_document(agreement: Agreement, result: Result) -> dict[str, object]:
    """Two engines' agreement, point by point and metric by metric; a censored or unknown value is null."""
    return {
        "experiment": agreement.experiment,
        "engines": list(agreement.engines),
        "points": [
            {
                "point": dict(point.values),
                "comparisons": [_comparison_document(comparison) for comparison in point.comparisons],
            }
            for point in agreement.points
        ],
        "runs": _run_documents(result.runs),
    }


def comparison_document(comparison: "Comparison") -> dict[str, object]:
    """A comparison: every arm's metrics, point by point, and the differences from the baseline."""
    return {
        "sides": list(comparison.arms),
        "baseline": comparison.baseline,
        "points": [
            {
                "point": dict(point.values),
                "metrics": {
                    arm: {name: _estimate_document(value) for name, value in found.items()}
                    for arm, found in point.estimates.items()
                },
                "differences": [
                    {"side": found.arm, **_difference_document(found)}
                    for metric in point.metrics
                    for found in point.differences(metric)
                ],
            }
            for point in (*comparison.points, *comparison.unmatched)
        ],
        "runs": [
            {"side": arm.label, "experiment": run.experiment, **_origin(run)}
            for point in (*comparison.points, *comparison.unmatched)
            for arm in point.arms
            for run in arm.runs
        ],
    }


def _difference_document(found: "Difference") -> dict[str, object]:
    compared = found.comparison
    within = compared.within_spread
    return {
        "metric": compared.metric,
        "difference": finite(compared.difference),
        "low": finite(found.low),
        "high": finite(found.high),
        "relative": finite(compared.relative),
        "beyond_chance": None if within is None else not within,
    }


def listing_document(runs: Sequence[Run]) -> list[dict[str, object]]:
    """The runs of a directory, without their metrics."""
    return [{"experiment": run.experiment, **_origin(run), "started": run.meta["started"]} for run in runs]


def _origin(run: Run) -> dict[str, object]:
    return {"engine": run.engine, "seed": run.seed, "settings": run.settings, "path": str(run.path)}


def _comparison_document(comparison: MetricComparison) -> dict[str, object]:
    return {
        "metric": comparison.metric,
        "value": _estimate_document(comparison.value),
        "reference": _estimate_document(comparison.reference),
        "difference": finite(comparison.difference),
        "relative": finite(comparison.relative),
        "reach": finite(comparison.reach),
        "within_spread": comparison.within_spread,
        "aim": comparison.tolerance and comparison.tolerance.words,
        "meets_aim": comparison.within_tolerance,
    }


def _estimate_document(estimate: Estimate) -> dict[str, object]:
    return {"mean": finite(estimate.mean), "sem": finite(estimate.sem), "n": estimate.n}


def estimate_values(found: Estimate) -> dict[str, object]:
    """A mean of repetitions with its confidence interval; a censored or unknown value is null."""
    return {"mean": finite(found.mean), "low": finite(found.low), "high": finite(found.high), "n": found.n}


def run_document(run: Run) -> dict[str, object]:
    """A run; the value of a censored metric is null, and its name is in `censored`."""
    (document,) = _run_documents([run])
    return document


def _run_documents(runs: Sequence[Run]) -> list[dict[str, object]]:
    """Runs, which are measured together."""
    from bufferscope.metrics import of_each

    return [_run_document(run, metrics) for run, metrics in zip(runs, of_each(runs), strict=True)]


def _run_document(run: Run, metrics: Metrics) -> dict[str, object]:
    from bufferscope.metrics import not_measured, not_recorded

    return {
        "engine": run.engine,
        "seed": run.seed,
        "point": run.point,
        **({"member": {key: member[key] for key in ("group", "values")}} if (member := run.meta.get("member")) else {}),
        "metrics": {name: finite(value) for name, value in metrics.items()},
        "censored": sorted(metrics.censored),
        "not_measured": not_measured(run),
        "not_recorded": not_recorded(run),
        "warnings": run.warnings,
        "path": str(run.path),
    }


def _expectation_document(evaluated: ExpectationResult) -> dict[str, object]:
    expectation, measured = evaluated.expectation, evaluated.measured
    return {
        "metric": expectation.metric,
        "group": expectation.group,
        "share_in": None if expectation.share_in is None else [finite(end) for end in expectation.share_in],
        "engine": evaluated.engine,
        "point": dict(evaluated.point),
        "relative_to": None if expectation.relative_to is None else dict(expectation.relative_to),
        "says": expectation.says,
        "figure": expectation.figure,
        "band": [finite(end) for end in expectation.band],
        "measured": None if measured is None else finite(measured),
        "reach": evaluated.reach,
        "censored": measured is not None and math.isinf(measured),
        "runs": evaluated.runs,
        "verdict": str(evaluated.verdict),
        "reason": evaluated.reason,
        "shown_by": evaluated.shown_by,
        "apart": [
            {
                "seed": each.seed,
                "measured": None if each.measured is None else finite(each.measured),
                "judged": each.is_judged,
                "why": each.why,
            }
            for each in evaluated.apart
        ],
    }
