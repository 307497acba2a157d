"""A page's charts under a pointer: what they show, how they move together, and that fingers can do the same."""

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browsers import await_frames, draw_all, eventually
from handmade import HandmadeRun, probes
from matrices import COLOURS, result_of, typical
from playwright.sync_api import Browser, Locator, Page, ViewportSize
from reactions import run_of
from reports import DRAWN, LABELS, document, run, stored

from bufferscope import figures, report
from bufferscope.figures.declaring import declaration

pytestmark = pytest.mark.browser

TOLD_MS = 5_000
OVER_TIME = ("queue_length", "rtt", "cwnd", "goodput", "download_time", "round_trips")
LIMIT, TIME, RTT = "queue limit", "time (s)", "round-trip time (ms)"
CELL = ["traffic own congestion", "at"]
TOLD = {
    "buffers": ["session", "group", "Mbit/s", "inferred buffer (KB)", "true buffer (KB)"],
    "queue_length": [LIMIT, TIME, "queue (packets)"],
    "rtt": [LIMIT, TIME, RTT],
    "cwnd": [LIMIT, TIME, "window (packets)", "flow", "is"],
    "goodput": [LIMIT, TIME, "goodput (Mbit/s)"],
    "download_time": [LIMIT, TIME, "download time (s)"],
    "rtt_cdf": [LIMIT, RTT, "probes answered within (%)"],
    "rtt_by_point": [LIMIT, "p5 (ms)", "p25 (ms)", "p50 (ms)", "p75 (ms)", "p95 (ms)", "max (ms)", "lost",
                     "beyond, among the lost"],
    "rtt_equation": [LIMIT, "what", RTT],
    "goodput_delay": [LIMIT, "median round-trip time (ms)", "goodput (Mbit/s)"],
    "trade_offs": [LIMIT, "median round-trip time (ms)", "goodput (Mbit/s)"],
    "rtt_by_size": ["queue limit (packets)", "mean round-trip time (ms)"],
    "drops_by_size": ["queue limit (packets)", "drops (packets)"],
    "retransmits_by_size": ["queue limit (packets)", "retransmissions (segments)"],
    "receive_window": [LIMIT, "acknowledged (MB)", "advertised window (MB)", "flow"],
    "rtt_cdf_panels": [LIMIT, RTT, "probes answered within (%)"],
    "throughput_delay": [LIMIT, "in flight (packets)", "goodput (Mbit/s)", "median RTT (ms)"],
    "smoke": [LIMIT, TIME, "p0 (ms)", "p50 (ms)", "p100 (ms)", "lost", "of"],
    "round_trips": [LIMIT, TIME, RTT, "flow"],
    "rtt_window": [LIMIT, "in flight (packets)", "smoothed RTT (ms)", "samples"],
    "rtt_members": [LIMIT, "95th percentile of a member's round-trip time (ms)", "members (%)"],
    "reaction_time": ["tcp congestion", "buffer (rate × 100 ms)"],
    "rtt_matrix": [LIMIT, "at", "median round-trip time (ms)"],
    "goodput_matrix": [LIMIT, "at", "goodput (Mbit/s)"],
}  # fmt: skip
"""The contents of each figure's tooltip, in a sweep of one key."""
BAND = ["p5", "p95"]
REACTIONS = {"queueing delay, p95 (ms)", "between reactions (s)", "to a fair share (s)"}
"""What the panels of `reaction_time` show, each with its own tooltip."""
EXPERIMENTS: dict[str, tuple[Sequence[str], int, Sequence[str]]] = {
    "two-queues": (LABELS, 1, DRAWN),
    "single": (LABELS[:1], 1, [name for name in DRAWN if declaration(name).shape in ("plot", "panels")]),
    "few": (
        LABELS,
        2,
        ["rtt", "cwnd", "download_time", "goodput_delay", "rtt_matrix", "rtt_cdf", "round_trips", "receive_window"],
    ),
    "many": (LABELS, 8, ["queue_length", "rtt", "cwnd", "goodput"]),
}
"""Points, repetitions and figures of each."""

MARKS = """(figure) => {
    // Every mark that has a tooltip: its box on the page, where to point at it, what its tooltip shows, and its row.
    const [left, top] = figure.view.origin();
    const padding = figure.view.padding();
    const canvas = figure.querySelector("canvas").getBoundingClientRect();
    const found = [];
    const walk = (group, x, y) => {
        for (const mark of group.items) for (const item of mark.items ?? []) {
            if (mark.marktype === "group") { walk(item, x + (item.x ?? 0), y + (item.y ?? 0)); continue; }
            if (!item.tooltip || item.isVoronoi || mark.role !== "mark") continue;
            const { x1, x2, y1, y2 } = item.bounds;
            // The middle, but not on the very edge of the plot, where the pointer may be outside of it.
            const inside = (value, length) => Math.min(Math.max(value, 1), Math.max(1, length - 1));
            const { width, height } = mark.group;
            const at = [x + inside((x1 + x2) / 2, width), y + inside((y1 + y2) / 2, height)];
            found.push({ box: [x + x1, y + y1, x + x2, y + y2], at, tells: item.tooltip, row: item.datum });
        }
    };
    walk(figure.view.scenegraph().root.items[0], canvas.left + left + padding.left, canvas.top + top + padding.top);
    return found;
}"""
LEGEND = """(figure, word) => {
    // The middle of a legend's label on the page.
    const [left, top] = figure.view.origin();
    const padding = figure.view.padding();
    const canvas = figure.querySelector("canvas").getBoundingClientRect();
    let place = null;
    const walk = (group, x, y) => {
        for (const mark of group.items) for (const item of mark.items ?? []) {
            if (mark.marktype === "group") walk(item, x + (item.x ?? 0), y + (item.y ?? 0));
            else if (mark.role === "legend-label" && item.text === word) {
                const { x1, x2, y1, y2 } = item.bounds;
                place = [x + (x1 + x2) / 2, y + (y1 + y2) / 2];
            }
        }
    };
    walk(figure.view.scenegraph().root.items[0], canvas.left + left + padding.left, canvas.top + top + padding.top);
    return place;
}"""
TOOLTIP = """() => {
    const element = document.querySelector("#vg-tooltip-element.visible");
    return element && Object.fromEntries([...element.querySelectorAll("tr")]
        .map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)));
}"""
SIGNALS = """([experiment, name]) =>
    [...document.querySelectorAll(`[id="${experiment}"] .stack figure`)].map((figure) => figure.view.signal(name))"""
TIMES = "zoom_time_s"
OPACITIES = """(figure) => {
    // The opacity of each line of a chart, by point.
    const found = {};
    const walk = (group) => {
        for (const mark of group.items) for (const item of mark.items ?? []) {
            if (mark.marktype === "group") walk(item);
            else if (mark.marktype === "line" && item.datum?.point) found[item.datum.point] = item.opacity ?? 1;
        }
    };
    walk(figure.view.scenegraph().root.items[0]);
    return found;
}"""

CHOICES = """(figure) => {
    // The middles of the labels of the legend that chooses series, on the page; none if the chart has no such legend.
    const { signals } = figure.view.getState({ signals: () => true, data: () => false });
    if (!("isolated_point_legend" in signals)) return [];
    const [left, top] = figure.view.origin();
    const padding = figure.view.padding();
    const canvas = figure.querySelector("canvas").getBoundingClientRect();
    const found = [];
    const walk = (group, x, y) => {
        for (const mark of group.items) for (const item of mark.items ?? []) {
            if (mark.marktype === "group") walk(item, x + (item.x ?? 0), y + (item.y ?? 0));
            else if (mark.role === "legend-label") {
                found.push([x + (item.bounds.x1 + item.bounds.x2) / 2, y + (item.bounds.y1 + item.bounds.y2) / 2]);
            }
        }
    };
    walk(figure.view.scenegraph().root.items[0], canvas.left + left + padding.left, canvas.top + top + padding.top);
    return found;
}"""
SEEN = """(figure) => {
    // The opacity of each mark of a chart.
    const found = [];
    const walk = (group) => {
        for (const mark of group.items) for (const item of mark.items ?? []) {
            if (mark.marktype === "group") walk(item);
            else if (mark.role === "mark") found.push(item.opacity ?? 1);
        }
    };
    walk(figure.view.scenegraph().root.items[0]);
    return found.join();
}"""

NAMED = """(figure) => {
    // The names at the ends of a chart's lines that can be seen: their boxes on the page and their opacity.
    const [left, top] = figure.view.origin();
    const padding = figure.view.padding();
    const canvas = figure.querySelector("canvas").getBoundingClientRect();
    const names = figure.view.scenegraph().root.items[0].items.find(({ name }) => name === "names_marks")?.items ?? [];
    return names.filter(({ datum }) => "at" in datum).map(({ text, opacity, bounds: { x1, x2, y1, y2 } }) => {
        const x = canvas.left + left + padding.left, y = canvas.top + top + padding.top;
        return { text, opacity, box: [x + x1, y + y1, x + x2, y + y2], edge: canvas.right };
    });
}"""

Marks = list[dict[str, Any]]


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of all figures: of two points, of a single one, of competing traffic, of few and of many repetitions."""
    directory = tmp_path_factory.mktemp("charts")
    experiments = {
        name: [
            run(label, seed, experiment=name, document=document(title=name, figures=drawn))
            for label in labels
            for seed in range(1, repetitions + 1)
        ]
        for name, (labels, repetitions, drawn) in EXPERIMENTS.items()
    }
    rivals = result_of(typical).runs
    for one in rivals:
        one.experiment, one.document = "rivals", document(figures=list(COLOURS), title="Rivals")
    everything = [*experiments.values(), rivals, population(), newcomers()]
    return report.build([stored(runs, directory / "results") for runs in everything], directory / "report")


def population() -> list[HandmadeRun]:
    """Five members with each queue; no probe of theirs is lost."""
    words = document(figures=["rtt_members"], title="Population")
    made = [run(label, seed, experiment="population", document=words) for label in LABELS for seed in range(1, 6)]
    for each in made:
        each.rows["probes"] = probes([20, 30, 40 + 10 * each.seed])
    return made


def newcomers() -> list[HandmadeRun]:
    """Two congestion controls with three sizes of a buffer, each alone and with a newcomer, twice."""
    made = [
        run_of(control, flows, size, seed)
        for control, flows, size in itertools.product(("reno", "cubic"), (0, 1), (1, 2, 4))
        for seed in (1, 2)
    ]
    for each in made:
        each.experiment, each.document = "newcomers", document(figures=["reaction_time"], title="Newcomers")
    return made


def opened(browser: Browser, path: Path, **options: Any) -> Page:
    page = browser.new_context(offline=True, **options).new_page()
    page.goto(path.as_uri())
    draw_all(page)
    return page


@pytest.fixture(scope="module")
def desktop(chromium: Browser, page_path: Path) -> Iterator[Page]:
    page = opened(chromium, page_path, viewport=ViewportSize(width=1280, height=900))
    yield page
    page.context.close()


@pytest.fixture
def phone(chromium: Browser, page_path: Path) -> Iterator[Page]:
    page = opened(chromium, page_path, viewport=ViewportSize(width=390, height=844), has_touch=True, is_mobile=True)
    yield page
    page.context.close()


def marks(page: Page, figure: str) -> Marks:
    """Marks with tooltips, once the figure is in sight."""
    element = page.locator(f"#{figure}")
    element.locator("canvas").scroll_into_view_if_needed()
    found: Marks = element.evaluate(MARKS)
    assert found, figure
    return found


def told_at(page: Page, mark: dict[str, Any]) -> dict[str, str]:
    """The tooltip's text when the pointer is in the middle of a mark."""
    page.mouse.move(5, 5)
    page.wait_for_selector("#vg-tooltip-element.visible", state="hidden", timeout=TOLD_MS)
    page.mouse.move(*mark["at"])
    page.wait_for_selector("#vg-tooltip-element.visible", timeout=TOLD_MS)
    told: dict[str, str] = page.evaluate(TOOLTIP)
    return told


def expected_fields(experiment: str, name: str) -> list[str] | None:
    """The contents of a figure's tooltip in this experiment; None for a figure that `TOLD` does not have."""
    if experiment == "rivals":
        quantity = {
            "rtt_matrix": "median round-trip time (ms)",
            "goodput_matrix": "goodput (Mbit/s)",
            "share_matrix": "share of the goodput (%)",
            "jain_matrix": "Jain's index of goodput",
        }[name]
        return ["congestion", "at", quantity]
    if name not in TOLD:
        return None
    fields = list(TOLD[name])
    if name == "buffers":  # of the first point alone
        return fields
    if experiment == "single":
        return ["traffic" if name == "goodput" else "", *fields[1:]] if name == "goodput" else fields[1:]
    repeated = experiment in ("few", "many")
    if repeated and declaration(name).shape == "matrix":
        fields += ["95 % interval, low", "95 % interval, high"]
    if repeated and name == "goodput_delay":
        fields += ["95 % interval from (ms)", "to (ms)", "95 % interval from (Mbit/s)", "to (Mbit/s)"]
    if experiment == "many" and name in ("queue_length", "rtt", "cwnd", "goodput"):
        fields = [field for field in fields if field not in ("flow", "is")] + BAND
    return fields


FIGURES: list[tuple[str, str]] = [
    *((experiment, name) for experiment, (*_, drawn) in EXPERIMENTS.items() for name in drawn),
    *(("rivals", name) for name in COLOURS),
    ("population", "rtt_members"),
    ("newcomers", "reaction_time"),
]


def test_the_page_has_every_kind_of_figure_and_all_are_interactive(desktop: Page) -> None:
    drawn = desktop.locator("figure[data-drawn]").evaluate_all("all => all.map((figure) => figure.id)")
    assert {f"{experiment}-{name}" for experiment, name in FIGURES} <= set(drawn)
    assert {name for _, name in FIGURES} == set(figures.NAMES) - {"live"}, "test_report_live.py has a live measurement"


@pytest.mark.parametrize(("experiment", "name"), FIGURES)
def test_every_figure_tells_the_values_under_the_pointer(desktop: Page, experiment: str, name: str) -> None:
    found = marks(desktop, f"{experiment}-{name}")
    within = [mark for mark in found if mark["box"][1] > 0 and mark["box"][3] < 900]
    for mark in (within[0], within[len(within) // 2], within[-1]):
        told = told_at(desktop, mark)
        if ("lost" not in told and "unfinished" not in told) or name == "rtt_by_point":
            own = REACTIONS.intersection(told)
            assert len(own) == (name == "reaction_time")
            expected = expected_fields(experiment, name)
            assert expected is None or sorted(told.keys() - own) == sorted(field for field in expected if field)
        assert not re.search("undefined|null|NaN", json.dumps(told)), told
        x, y = mark["at"]
        here = [one for one in found if _holds(one["box"], x, y)]
        assert any(_tells(told, one["row"]) for one in here), (told, here)


@pytest.mark.parametrize(("experiment", "name"), FIGURES)
def test_a_click_on_a_legend_dims_the_other_series(desktop: Page, experiment: str, name: str) -> None:
    figure = desktop.locator(f"#{experiment}-{name}")
    figure.locator("canvas").scroll_into_view_if_needed()
    places = figure.evaluate(CHOICES)
    if experiment == "two-queues" and name in ("queue_length", "rtt", "cwnd", "goodput", "rtt_cdf"):
        assert len(places) > 1
    if len(places) > 1:
        before = figure.evaluate(SEEN)
        desktop.mouse.click(*places[0])
        assert eventually(desktop, lambda: figure.evaluate(SEEN), lambda seen: seen != before)
        desktop.mouse.click(*places[0])
        assert eventually(desktop, lambda: figure.evaluate(SEEN), lambda seen: seen == before)


def _holds(box: list[float], x: float, y: float) -> bool:
    x1, y1, x2, y2 = box
    return x1 - 1 <= x <= x2 + 1 and y1 - 1 <= y <= y2 + 1


def _tells(told: dict[str, str], row: dict[str, Any]) -> bool:
    """Whether each value shown is one of the row's values, to the digits shown."""
    return all(any(_same(value, cell) for cell in row.values()) for value in told.values())


def _same(told: str, cell: Any) -> bool:
    if isinstance(cell, str) or cell is None:
        return told == (cell or "")
    return (
        float(told.replace(",", "").replace("\N{MINUS SIGN}", "-")) == pytest.approx(cell, rel=1e-3)
        if _numeric(told)
        else False
    )


def _numeric(text: str) -> bool:
    return re.fullmatch("[\N{MINUS SIGN}-]?[0-9.,]+(e[+-]?[0-9]+)?", text) is not None


def signals(page: Page, name: str, experiment: str = "two-queues") -> list[Any]:
    """A signal of each chart over time of an experiment, once pending drawing is complete."""
    await_frames(page)
    page.wait_for_timeout(50)
    values: list[Any] = page.evaluate(SIGNALS, [experiment, name])
    return values


def canvas_box(page: Page, figure: str) -> tuple[float, float, float, float]:
    canvas = page.locator(f"#{figure} canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert box is not None
    return box["x"], box["y"], box["width"], box["height"]


def test_figures_over_time_come_first_below_one_another_with_aligned_plots(desktop: Page) -> None:
    names = desktop.evaluate("() => [...document.querySelectorAll('#two-queues figure')].map((figure) => figure.id)")
    first = [f"two-queues-{name}" for name in DRAWN if name in OVER_TIME]
    assert names[: len(first)] == first
    plots = desktop.evaluate(
        """() => [...document.querySelectorAll("#two-queues .stack figure")].map((figure) =>
            [figure.view.origin()[0], figure.querySelector("canvas").getBoundingClientRect().left,
             figure.view.signal("width")])"""
    )
    assert len(plots) == len(OVER_TIME)
    assert all(plot == plots[0] for plot in plots)
    titles = [
        '"time (s)"' in json.dumps(title)  # of the axis; "download time (s)" is another
        for title in desktop.evaluate(
            """() => [...document.querySelectorAll("#two-queues .stack figure")].map((figure) => {
                const texts = [];
                const walk = (group) => { for (const mark of group.items) for (const item of mark.items ?? []) {
                    if (mark.marktype === "group") walk(item);
                    else if (mark.role === "axis-title") texts.push(item.text);
                } };
                walk(figure.view.scenegraph().root.items[0]);
                return texts;
            })"""
        )
    ]
    assert titles == [False] * (len(OVER_TIME) - 1) + [True]


def test_one_crosshair_moves_in_all_figures_over_time(desktop: Page) -> None:
    left, top, width, height = canvas_box(desktop, "two-queues-cwnd")
    desktop.mouse.move(left + width / 2, top + height / 2)
    times = signals(desktop, "pointed_s")
    assert times == [pytest.approx(1, abs=0.1)] * len(OVER_TIME)
    assert len(set(times)) == 1
    desktop.mouse.move(2, 2)
    assert signals(desktop, "pointed_s") == [None] * len(OVER_TIME)


def test_dragging_and_the_wheel_move_and_zoom_all_figures_over_time(desktop: Page) -> None:
    left, top, width, height = canvas_box(desktop, "two-queues-rtt")
    x, y = left + width / 2, top + height / 2
    desktop.mouse.move(x, y)
    desktop.keyboard.down("Shift")
    desktop.mouse.wheel(0, -300)
    desktop.keyboard.up("Shift")
    zoomed = signals(desktop, TIMES)
    assert zoomed == [zoomed[0]] * len(OVER_TIME)
    assert zoomed[0][1] - zoomed[0][0] < 1.9
    desktop.keyboard.down("Shift")
    drag(desktop, (x, y), (x - 100, y))
    moved = signals(desktop, TIMES)
    assert moved == [moved[0]] * len(OVER_TIME)
    assert moved[0][0] > zoomed[0][0]
    drag(desktop, (x, y), (x + 3 * width, y))
    desktop.keyboard.up("Shift")
    start, end = signals(desktop, TIMES)[0]
    assert (start, end) == pytest.approx((0, zoomed[0][1] - zoomed[0][0])), "no time before the run"
    desktop.locator("#two-queues .whole button").click()
    assert signals(desktop, TIMES) == [None] * len(OVER_TIME)
    assert desktop.locator("#two-queues .whole button").is_hidden()


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()


def test_dragging_over_a_period_shows_it_in_all_figures_over_time(desktop: Page) -> None:
    left, top, width, height = canvas_box(desktop, "two-queues-rtt")
    y = top + height / 2
    drag(desktop, (left + width / 2, y), (left + width * 0.75, y))
    chosen = signals(desktop, TIMES)
    assert chosen == [chosen[0]] * len(OVER_TIME)
    assert 0.7 < chosen[0][0] < chosen[0][1] < 2
    desktop.mouse.dblclick(left + width / 2, y)
    assert signals(desktop, TIMES) == [None] * len(OVER_TIME)


def test_a_name_in_a_legend_isolates_its_series_in_all_figures_over_time(desktop: Page) -> None:
    figure = desktop.locator("#two-queues-queue_length")
    other = desktop.locator("#two-queues-rtt")
    canvas_box(desktop, "two-queues-queue_length")
    desktop.mouse.click(*figure.evaluate(LEGEND, "100p"))

    def shows(chart: Locator, *names: str) -> bool:
        """Whether the chart comes to show these lines, and dims the others."""
        return eventually(
            desktop,
            lambda: chart.evaluate(OPACITIES),
            lambda seen: all(opacity == 1 if name in names else opacity < 0.2 for name, opacity in seen.items()),
        )

    assert shows(figure, "100p")
    assert shows(other, "100p")
    desktop.mouse.click(*figure.evaluate(LEGEND, "50p"))  # adds the other
    assert shows(other, *LABELS)
    desktop.mouse.click(*figure.evaluate(LEGEND, "100p"))  # takes the first away
    assert shows(other, "50p")
    left, top, width, height = canvas_box(desktop, "two-queues-queue_length")
    desktop.mouse.dblclick(left + width / 2, top + height / 2)
    assert shows(other, *LABELS)


def test_lines_are_named_at_their_end_within_the_page_and_apart(desktop: Page) -> None:
    figure = desktop.locator("#two-queues-queue_length")
    canvas_box(desktop, "two-queues-queue_length")
    names = figure.evaluate(NAMED)
    assert sorted(name["text"] for name in names) == sorted(LABELS)
    assert all(name["opacity"] == 1 and name["box"][2] <= name["edge"] for name in names)
    upper, lower = sorted(names, key=lambda name: name["box"][1])
    assert upper["box"][3] <= lower["box"][1] + 1


def test_names_are_dimmed_with_their_lines_and_gone_while_a_part_is_shown(desktop: Page) -> None:
    figure = desktop.locator("#two-queues-queue_length")
    left, top, width, height = canvas_box(desktop, "two-queues-queue_length")

    def shows(opacities: dict[str, float]) -> bool:
        """Whether the names come to have these opacities."""
        return eventually(
            desktop,
            lambda: {name["text"]: name["opacity"] for name in figure.evaluate(NAMED)},
            lambda seen: seen == pytest.approx(opacities),
        )

    desktop.mouse.click(*figure.evaluate(LEGEND, "100p"))
    assert shows({"100p": 1, "50p": 0.08})
    desktop.mouse.click(*figure.evaluate(LEGEND, "100p"))
    assert shows({"100p": 1, "50p": 1})
    desktop.mouse.move(left + width / 2, top + height / 2)
    desktop.keyboard.down("Shift")
    desktop.mouse.wheel(0, -300)
    desktop.keyboard.up("Shift")
    assert shows({"100p": 0, "50p": 0})
    desktop.locator("#two-queues .whole button").click()
    assert shows({"100p": 1, "50p": 1})


def test_a_phone_leaves_the_names_to_the_legend(phone: Page) -> None:
    assert phone.locator("#two-queues-queue_length").evaluate(NAMED) == []


def touch(page: Page, *moments: list[tuple[float, float]]) -> None:
    """Put fingers down at the first places, move them to the others, and lift them."""
    session = page.context.new_cdp_session(page)
    for kind, places in [
        ("touchStart", moments[0]),
        *(("touchMove", moment) for moment in moments[1:]),
        ("touchEnd", []),
    ]:
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.wait_for_timeout(200)


def test_two_fingers_zoom_where_they_are(phone: Page) -> None:
    left, top, width, height = canvas_box(phone, "two-queues-rtt")
    middle, y = left + width / 2, top + height / 2
    touch(phone, *([(middle - reach, y), (middle + reach, y)] for reach in (30, 40, 50, 60)))
    shown = signals(phone, TIMES)
    assert shown == [shown[0]] * len(OVER_TIME)
    start, end = shown[0]
    assert end - start == pytest.approx(1, rel=0.05)  # twice as far apart: half of 2 s
    touch(phone, *([(middle - reach, y), (middle + reach, y)] for reach in (60, 40, 20)))
    assert signals(phone, TIMES) == [None] * len(OVER_TIME)


def test_one_finger_moves_the_time_axis_sideways_and_the_page_upwards(phone: Page) -> None:
    left, top, width, height = canvas_box(phone, "two-queues-cwnd")
    middle, y = left + width / 2, top + height / 2
    touch(phone, *([(middle - reach, y), (middle + reach, y)] for reach in (30, 45, 60)))
    before = signals(phone, TIMES)[0]
    touch(phone, *([(middle - moved, y)] for moved in (0, 20, 40, 60)))
    after = signals(phone, TIMES)[0]
    assert after[0] > before[0]
    scrolled = phone.evaluate("scrollY")
    touch(phone, *([(middle, y - moved)] for moved in (0, 30, 60, 90, 120)))
    assert phone.evaluate("scrollY") > scrolled + 50
    assert signals(phone, TIMES)[0] == pytest.approx(after)
