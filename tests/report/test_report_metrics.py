"""Metrics on sheets: every metric once, families together, and none too wide for paper."""

import math

from handmade import TCP, HandmadeResult, HandmadeRun, scenario, sweep
from reports import LABELS, run

from bufferscope.figures.source import points
from bufferscope.metrics import compute
from bufferscope.report.metrics_table import MOST_COLUMNS, MetricsTable, family_name, meanings, table


def of(result: HandmadeResult) -> MetricsTable:
    return table(points(result))


def test_every_metric_has_one_column_in_the_order_of_their_definitions() -> None:
    made = of(HandmadeResult([run(label) for label in LABELS]))
    assert sorted(column.name for column in made.columns) == sorted(compute(run("50p")))
    assert made.size == len(compute(run("50p")))
    assert made.points == ("50p", "100p")


def test_a_sheet_has_whole_families_and_room_on_paper() -> None:
    made = of(HandmadeResult([run(label) for label in LABELS]))
    for sheet in made.sheets:
        names = [column.name for family in sheet.families for column in family.columns]
        assert len(names) <= MOST_COLUMNS
        assert all(len(row) == len(names) for row in sheet.rows)
        assert len(sheet.rows) == len(made.points)
        assert all(family_name(c.name) == family.name for family in sheet.families for c in family.columns)
    parts = [family for sheet in made.sheets for family in sheet.families]
    for name in {family.name for family in parts}:
        own = [len(family.columns) for family in parts if family.name == name]
        assert len(own) == math.ceil(sum(own) / MOST_COLUMNS)  # only what no sheet has room for is parted


def test_a_family_too_large_for_a_sheet_goes_on_on_the_next() -> None:
    many = scenario({f"flow{n}": TCP for n in range(20)})
    flows = [{"flow": f"flow{n}/1", "t_ns": t * 10**9, "delivered_bytes": t} for n in range(20) for t in range(10)]
    made = of(HandmadeResult([HandmadeRun(many, {"flows": flows})]))
    goodput = [len(f.columns) for sheet in made.sheets for f in sheet.families if f.name == "goodput"]
    assert sum(goodput) == 22  # twenty flows, the total and Jain's index
    assert max(goodput) <= MOST_COLUMNS
    assert made.points == ()


def test_headings_leave_out_what_family_and_unit_say() -> None:
    made = {column.name: column for column in of(HandmadeResult([run("50p")])).columns}
    headings = {
        name: (made[name].heading, made[name].unit)
        for name in ("rtt.p95_ms", "rtt.sent", "goodput.bulk_mbit", "goodput.jain", "drops.r1>h2")
    }
    assert headings == {
        "rtt.p95_ms": ("p95", "ms"),
        "rtt.sent": ("sent", "probes"),
        "goodput.bulk_mbit": ("bulk", "Mbit/s"),
        "goodput.jain": ("jain", ""),
        "drops.r1>h2": ("r1>h2", "packets"),
    }


def test_meanings_are_told_once_for_all_that_share_them() -> None:
    told = meanings([of(sweep(["50p"], run)), of(sweep(["100p"], run))])
    names = [name for name, _, _ in told]
    assert len(names) == len(set(names))
    assert names.count("rtt.p<N>_ms") == 1
