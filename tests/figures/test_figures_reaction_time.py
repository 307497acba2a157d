"""Latency and reaction times against the size of the buffer, with fitted exponents."""

import itertools
import math
from typing import Any

import pytest
from handmade import HandmadeResult
from reactions import run_of

from bufferscope import figures
from bufferscope.figures import pictures
from bufferscope.figures.charts.reaction_time import fit

Spec = dict[str, Any]


def spec_of(result: HandmadeResult) -> Spec:
    spec: Spec = figures.draw(result, "reaction_time").to_dict()
    return spec


def rows_of(spec: Spec, panel: Spec, mark: str) -> list[dict[str, Any]]:
    layer = next(layer for layer in panel["layer"] if layer["mark"]["type"] == mark)
    source = layer.get("data") or panel.get("data") or spec["data"]
    rows: list[dict[str, Any]] = spec["datasets"][source["name"]]
    return rows


def sweep(newcomers: tuple[int, ...] = (0, 1)) -> HandmadeResult:
    return HandmadeResult(
        [run_of(*choice) for choice in itertools.product(("reno", "cubic"), newcomers, (1, 2, 4, None))]
    )


def test_a_power_law_is_fitted_with_its_interval() -> None:
    exact = fit([1, 2, 4], [3, 12, 48])
    assert exact
    assert exact.exponent == pytest.approx(2)
    assert exact.at(8) == pytest.approx(192)
    assert exact.reach == pytest.approx(0, abs=1e-6)
    # y is 1, 2, 8 at x = 1, 2, 4: slope 1.5 in logarithms to the base 2, residuals 1/6, -1/3, 1/6 around it, so a
    # standard error of sqrt(1/6 / 2) = 0.2887; Student's t with one degree of freedom is 12.706.
    scattered = fit([1, 2, 4], [1, 2, 8])
    assert scattered
    assert scattered.exponent == pytest.approx(1.5)
    assert scattered.reach == pytest.approx(12.706 * math.sqrt(1 / 12), rel=1e-4)
    assert str(scattered) == "1.50 ± 3.67"


def test_a_line_through_two_values_has_no_interval_and_one_value_has_no_line() -> None:
    found = fit([1, 2], [1, 4])
    assert found
    assert math.isnan(found.reach)
    assert str(found) == "2.00"
    assert fit([2, 2], [1, 4]) is None


def test_each_quantity_has_a_panel_and_each_control_a_line() -> None:
    spec = spec_of(sweep())
    latency, epochs, shares = spec["concat"]
    assert [row["latency"] for row in rows_of(spec, latency, "point")] == [100, 200, 400, 100, 200, 400]
    assert [row["time between reactions"] for row in rows_of(spec, epochs, "point")] == [1, 4, 16, 1, 2, 4]
    assert {row["series"] for row in rows_of(spec, shares, "point")} == {"reno", "cubic"}
    assert {row["buffer"] for row in rows_of(spec, epochs, "point")} == {1, 2, 4}
    words = " ".join(spec["title"]["subtitle"])
    assert "Exponent of the latency: reno 1.00 ± 0.00, cubic 1.00 ± 0.00; in the article 1 (dashed)." in words
    assert "Exponent of the time between reactions: reno 2.00 ± 0.00, cubic 1.00 ± 0.00; in the article 2" in words
    assert pictures.svg(spec).startswith("<svg")


def test_a_discipline_without_a_buffer_size_is_told_beside_the_axis() -> None:
    words = " ".join(spec_of(sweep((0,)))["title"]["subtitle"])
    assert "Without a place on the axis: reno, fq_codel: 100 ms, 1 s; cubic, fq_codel: 100 ms, 1 s." in words


def test_without_newcomers_there_is_no_panel_for_them() -> None:
    assert len(spec_of(sweep((0,)))["concat"]) == 2


def test_without_a_fifo_there_is_no_figure() -> None:
    with pytest.raises(figures.NoDataError, match="no run has a FIFO of a known size"):
        figures.draw(HandmadeResult([run_of("reno", 0, None)]), "reaction_time")
