"""Lines over time are labelled at their right end if the labels fit beside their lines."""

from itertools import pairwise
from typing import Any

import pytest
from handmade import PING, HandmadeRun, probes, scenario, sweep
from hypothesis import given
from hypothesis import strategies as st

from bufferscope import figures
from bufferscope.figures import pictures
from bufferscope.figures.ends import apart

Spec = dict[str, Any]


def rtt_of(levels_ms: dict[str, float], seconds: float = 10) -> Spec:
    """The figure of constant round-trip times, one per point, for this part of 10 s."""

    def run(label: str) -> HandmadeRun:
        answered = probes([levels_ms[label]] * int(10 * seconds))
        return HandmadeRun(scenario({"ping": PING}, duration_s=10), {"probes": answered})

    spec: Spec = figures.draw(sweep(list(levels_ms), run), "rtt").to_dict()
    return spec


def names_of(spec: Spec) -> dict[str, float] | None:
    """The visible names and the values at which they are; None if there are none."""
    (layer,) = (layer for layer in spec["layer"] if layer.get("name") == "names")
    if layer["mark"].get("opacity") == 0:
        return None
    return {row["point"]: row["at"] for row in spec["datasets"][layer["data"]["name"]]}


def test_a_name_stands_at_the_height_of_its_lines_end() -> None:
    assert names_of(rtt_of({"50p": 20, "100p": 80})) == pytest.approx({"50p": 20, "100p": 80})


def test_names_of_lines_that_end_together_stand_apart_around_them() -> None:
    names = names_of(rtt_of({"50p": 50, "100p": 50.1, "200p": 100}))
    assert names is not None
    assert names["100p"] - names["50p"] > 0.06 * 103  # 17 of 260 pixels
    assert (names["100p"] + names["50p"]) / 2 == pytest.approx(50.05)


@pytest.mark.parametrize(
    ("levels", "seconds"),
    [
        ({"a": 50, "b": 50, "c": 50, "d": 50}, 10),  # the outer ones would be far from their lines
        ({"a": 50, "b": 80}, 5),  # lines end in the middle
    ],
)
def test_names_that_could_not_stand_beside_their_lines_are_left_to_the_legend(
    levels: dict[str, float], seconds: float
) -> None:
    unnamed = rtt_of(levels, seconds)
    named = rtt_of({label: 20.0 * place for place, label in enumerate(levels, start=1)})
    assert names_of(unnamed) is None
    assert names_of(named) is not None
    assert unnamed["width"] == named["width"], "their time axes are below one another"


@pytest.mark.parametrize("labels", [["one"], [*"abcde"], ["short", "a label that is too long for it"]])
def test_without_room_for_names_the_plot_is_as_wide_as_ever(labels: list[str]) -> None:
    spec = rtt_of({label: 20.0 * place for place, label in enumerate(labels, start=1)})
    assert "names" not in [layer.get("name") for layer in spec["layer"]]
    assert spec["width"] == 720


def test_a_picture_has_the_names_and_a_legend_in_lines_that_fit() -> None:
    assert pictures.svg(rtt_of({"50p": 20, "100p": 80})).count(">100p</text>") == 2
    many = {f"{places} packets, with offload": float(places) for places in range(10, 70, 10)}
    drawn = pictures.svg(rtt_of(many))
    assert int(drawn.split('width="')[1].split('"')[0].split(".")[0]) < 820


@given(st.lists(st.floats(0, 260), min_size=1, max_size=6))
def test_names_are_apart_within_the_plot_and_in_the_order_of_their_lines(wanted: list[float]) -> None:
    places = apart(wanted, 17, 260)
    assert all(-1e-9 <= place <= 260 + 1e-9 for place in places)
    assert all(high - low > 17 - 1e-9 for low, high in pairwise(sorted(places)))
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    assert [places[index] for index in order] == sorted(places)
    if all(high - low >= 17 for low, high in pairwise(sorted(wanted))):
        assert places == pytest.approx(wanted)
