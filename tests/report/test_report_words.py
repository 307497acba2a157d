"""The formatting of numbers for readers."""

import math

import pytest

from bufferscope.base.fmt import NBSP, THIN, band, margin, number, plural, quantity, setting, with_unit
from bufferscope.report.parameters import settings


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7.0, "7"),
        (12.3456, "12.35"),
        (0.012345, "0.01235"),
        (999.96, "1000"),
        (1234567, f"1{THIN}234{THIN}567"),
        (12345.6, f"12{THIN}346"),
        (-2.5, "-2.5"),
        (math.inf, "∞"),
        (math.nan, "undefined"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_a_unit_is_not_torn_from_its_number() -> None:
    assert with_unit(12.5, "ms") == f"12.5{NBSP}ms"
    assert with_unit(12.5, "") == "12.5"


def test_one_is_singular() -> None:
    assert [with_unit(n, "probes") for n in (0, 1, 2)] == [f"0{NBSP}probes", f"1{NBSP}probe", f"2{NBSP}probes"]
    assert with_unit(1, "ms") == f"1{NBSP}ms"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (5_000_000, "ns", "5 ms"),
        (1_500_000_000, "ns", "1.5 s"),
        (250, "ns", "250 ns"),
        (10_000_000, "bps", "10 Mbit/s"),
        (9_600, "bps", "9.6 kbit/s"),
        (100, "packets", "100 packets"),
        (0, "ns", "0 s"),
    ],
)
def test_quantities_are_scaled(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("limit_packets", 100, "limit 100 packets"),
        ("target_ns", 5_000_000, "target 5 ms"),
        ("bandwidth_bps", 10_000_000, "bandwidth 10 Mbit/s"),
        ("ecn", False, "ecn off"),
        ("congestion", "reno", "congestion reno"),
        ("probability", 0.02, "probability 0.02"),
        ("flows", 30, "flows 30"),
        ("max_bytes", 250_000, f"max 250{THIN}000 bytes"),
    ],
)
def test_settings_speak_by_the_unit_of_their_key(key: str, value: object, text: str) -> None:
    assert setting(key, value).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (245, 320, "245 to 320 ms"),
        (3, math.inf, "at least 3 ms"),
        (-math.inf, 5, "at most 5 ms"),
        (-math.inf, math.inf, "any"),
    ],
)
def test_bands(low: float, high: float, text: str) -> None:
    assert band(low, high, "ms").replace(NBSP, " ") == text


def test_plurals() -> None:
    assert [plural(count, "run") for count in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]


def test_a_table_among_the_settings_is_told_key_by_key() -> None:
    turns = {"on_ns": 2_000_000_000, "off_ns": 500_000_000, "periods": "fixed"}
    told = settings({"rate_bps": 2_000_000, "on_off": turns, "bytes": None})
    assert told == f"rate 2{NBSP}Mbit/s, on 2{NBSP}s, off 500{NBSP}ms, periods fixed"


@pytest.mark.parametrize(
    ("reach", "mean", "text"),
    [
        (14.2, 424.8, "14"),
        (0.0163, 1.779, "0.016"),
        (0.066, 36.53, "0.07"),
        (0.00055, 1.822, "<0.001"),
        (1.1e-14, 9.556, "0"),
        (0.0, 9.556, "0"),
        (183.0, 4174.0, "180"),
        (0.31, 4174.0, "<1"),
        (2.345, 0.0, "2.3"),
        (0.4, 5.0, "0.4"),
    ],
)
def test_a_margin_has_no_digits_beyond_those_of_its_mean(reach: float, mean: float, text: str) -> None:
    assert margin(reach, mean) == text
