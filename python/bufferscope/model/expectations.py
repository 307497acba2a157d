"""Expectations in the form of the native core and of `run.json`: what a document says, and where it is measured."""

from typing import NotRequired, TypedDict

from bufferscope.base.bounded import Interval, Positive, Whole


class MetricPosition(TypedDict):
    """Where a metric is taken: the position of a point, and of the point that it is divided by, if it is."""

    point: Whole
    relative_to: Whole | None


class BandComparison(MetricPosition):
    """The measurement to compare with a band, and where a difference's cause has to show."""

    shown_by: NotRequired[MetricPosition | None]


class ExpectationEntry(TypedDict):
    """An expectation as the native core and `run.json` write it."""

    metric: str
    says: str
    figure: NotRequired[str | None]
    band: Interval
    """Its ends; None for an infinite one."""
    differs: str | None
    where: dict[str, str]
    relative_to: dict[str, str] | None
    shown_by: NotRequired[dict[str, str] | None]
    comparisons: list[BandComparison]
    not_applicable: str | None
    group: NotRequired[str]
    """The group of the population whose members it is about; missing if it is about all."""
    share_in: NotRequired[Interval]
    """If given, the measurement is the share of the runs whose metric lies between these ends."""
    number: NotRequired[Positive]
    """Its position in the file, from 1; `run.json` has only the expectations about its point."""
