"""The page: what it says, that it holds all it needs, and that nothing in an experiment file can act in it."""

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import DRAWN, FIFTY, LABELS, built, document, expectation, inflated, run, specs, stored, worded

from bufferscope import report
from bufferscope.report.drawing import data_url, script_json
from bufferscope.report.prose import markdown
from bufferscope.report.verdicts import GAUGE, gauge

EVIL = "</title><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


class Page(HTMLParser):
    """The parts of a page that tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words = ""
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {key: value or "" for key, value in attrs}))
        if tag in ("script", "style"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.words += data

    def all(self, tag: str, attribute: str) -> list[str]:
        return [attributes[attribute] for name, attributes in self.elements if name == tag and attribute in attributes]


@pytest.fixture(scope="module")
def page(two_queues: Path) -> Page:
    return Page(two_queues.read_text(encoding="utf-8"))


def refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def spaced(words: str) -> str:
    """Words with single ordinary spaces."""
    return re.sub(r"\s+", " ", words)


def test_the_page_is_named_and_titled(two_queues: Path, page: Page) -> None:
    assert two_queues.name == "index.html"
    assert "Two queues" in page.words
    assert "1 experiment, 2 runs" in page.words


def test_the_verdicts_have_every_expectation_with_band_measurement_and_verdict(page: Page) -> None:
    words = spaced(page.words.split("Bands are derived")[1])
    # Answers of 20, 30, 50 and 60 ms: mean 40, longest 60; one of five lost, so p95 is hidden.
    assert "about 40 ms rtt.mean_ms at 50p 35 to 45 ms 40 ms ✓ reproduced" in words
    assert "about 40 ms rtt.mean_ms at 100p 35 to 45 ms 40 ms ✓ reproduced" in words
    assert "never above 50 ms rtt.max_ms at 100p at most 50 ms 60 ms ≉ differs, cause not shown why" in words
    assert "no loss at all rtt.lost at 50p 0 to 0 probes 1 probe ✗ not reproduced" in words
    assert "the same at both rtt.mean_ms: 50p over 100p 0.9 to 1.1 × 1 × ✓ reproduced" in words
    assert "lost ones hide the tail rtt.p95_ms at 50p 0 to 100 ms hidden by what was lost ✗ not reproduced" in words


def test_every_expectation_and_every_reason_stands_on_the_page_once(page: Page) -> None:
    for once in ("never above 50 ms", "no loss at all", "the same at both", "lost ones hide the tail"):
        assert page.words.count(once) == 1, once
    assert page.words.count("the probe waits for a page") == 1
    assert page.words.count("200p was taken out with --set") == 1


def test_a_single_run_has_no_interval(page: Page) -> None:
    assert "±" not in page.words
    assert "confidence interval" not in page.words


def test_the_counts_are_honest(page: Page) -> None:
    # Three are reproduced, one differs with a cause, two without, and one is about a point that is not there.
    words = spaced(page.words)
    assert "3 of 6 statements of the documents are reproduced; 3 differ: here is why. 1 more does not apply" in words
    assert "✓ 3 reproduced ≉ 1 differs, cause not shown ✗ 2 not reproduced – 1 not applicable" in words


def test_what_differs_is_grouped_by_its_reason_beside_its_experiment(page: Page) -> None:
    words = spaced(page.words.split("Bands are derived")[1].split("What was measured")[0])
    assert "≉ differs, cause not shown the probe waits for a page rtt.max_ms at 100p" in words
    assert "✗ not reproduced The experiment's file gives no reason. rtt.lost at 50p rtt.p95_ms at 50p" in words
    assert "1 statement does not apply to these runs The document says" in words, "folded away"
    assert "– not applicable 200p was taken out with --set rtt.mean_ms" in words


def test_the_section_has_source_notes_parameters_and_the_command(page: Page) -> None:
    words = spaced(page.words)
    assert "two-queues · after a report" in words
    assert ("strong", {}) in page.elements
    assert "r1 ↔ h2 10 Mbit/s 5 ms 50ppfifo, limit 50 packets100ppfifo, limit 100 packets 14 bytes" in words
    assert "h1 → h2 0 s to 2 s interval 100 ms, payload 56 bytes, timeout 60 s" in words
    assert "bufferscope run two-queues --seed 1" in words
    assert "bufferscope 0.1.0, engine sim 0.1.0, sampled every 10 ms" in words


def test_an_interval_of_the_flows_samples_is_told_beside_the_queues_own(tmp_path: Path) -> None:
    made = run("50p")
    made.scenario["flows_interval_ns"] = 1_000_000_000
    words = spaced(Page(worded(tmp_path, [made]).read_text(encoding="utf-8")).words)
    assert "sampled every 10 ms (flows: every 1 000 ms), started" in words


def test_the_metrics_have_a_row_a_point_and_a_column_a_metric(page: Page) -> None:
    words = spaced(page.words.split("What the metrics mean")[1]).replace(" ", "")
    assert "rttPointmeanmsp5msp50msp95msp99msmaxmssentprobeslostprobesansweredprobes" in words
    # Answers of 20, 30, 50 and 60 ms of five probes: mean 40; the median of all five is 50, the 95th percentile hidden.
    assert re.search(r"50p40[\d.]+50censoredcensored60514100p40", words)


def test_nothing_is_loaded_from_elsewhere(two_queues: Path, page: Page) -> None:
    loading = [
        ("img", "src"),
        ("script", "src"),
        ("link", "href"),
        ("iframe", "src"),
        ("source", "src"),
        ("object", "data"),
    ]
    sources = [value for tag, attribute in loading for value in page.all(tag, attribute)]
    assert not sources
    assert not re.search(r"url\(\s*['\"]?(?!data:)", two_queues.read_text().split("</style>")[0])
    (policy,) = [a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_every_link_leads_somewhere(two_queues: Path, page: Page) -> None:
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    links = page.all("a", "href")
    assert len(links) > 10
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids, link
        else:
            assert (two_queues.parent / unquote(urldefrag(link).url)).exists(), link


def test_ids_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_every_figure_is_there_and_described(two_queues: Path, page: Page) -> None:
    assert len(page.all("figure", "id")) == len(DRAWN)
    described = re.findall('<div class="still"[^>]*><p>([^<]*)</p>', two_queues.read_text(encoding="utf-8"))
    assert len(described) == len(DRAWN)
    assert all(len(text) > 40 for text in described)
    assert not page.all("img", "src")
    assert not (two_queues.parent / "figures").exists()


def test_stills_are_in_the_page_and_beside_it(tmp_path: Path) -> None:
    drawn = ["rtt", "rtt_cdf"]
    path = built(tmp_path, [run("50p", document=document(figures=drawn))], stills=True)
    page = Page(path.read_text(encoding="utf-8"))
    assert all(len(text) > 40 for text in page.all("img", "alt"))
    assert [source.partition(",")[0] for source in page.all("img", "src")] == ["data:image/svg+xml"] * len(drawn)
    stems = [f"two-queues-{name}" for name in drawn]
    assert {file.name for file in (path.parent / "figures").iterdir()} == {
        f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")
    }
    assert all((path.parent / "figures" / f"{stem}.svg").read_text().startswith("<svg") for stem in stems)
    assert {link for link in page.all("a", "href") if link.startswith("figures/")} == {
        f"figures/{stem}.{kind}" for stem in stems for kind in ("svg", "png")
    }


def test_the_data_in_the_page_is_valid_json(two_queues: Path) -> None:
    text = two_queues.read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json"([^>]*)>(.*?)</script>', text, re.S)
    assert all(isinstance(json.loads(content, parse_constant=refused), dict) for _, content in found)
    charts = specs(text)
    data = re.findall(r'<script [^>]*class="data" data-name="([^"]*)">(.*?)</script>', text)
    assert len(charts) == len(DRAWN)
    assert all(isinstance(json.loads(each, parse_constant=refused), dict) for each in charts)
    assert all(isinstance(json.loads(inflated(each), parse_constant=refused), dict) for _, each in data)
    names = [name for name, _ in data]
    assert len(names) == len(set(names)), "data that several figures share are there once"
    assert {name for spec in charts for name in re.findall(r'"data":\{"name":"([^"]+)"', spec)} == set(names)


def test_the_page_has_a_reasonable_size(two_queues: Path) -> None:
    assert two_queues.stat().st_size < 3_000_000


def test_a_figure_without_data_is_told_in_its_place(tmp_path: Path) -> None:
    made = run("50p", document=document(figures=["download_time"]))
    made.rows["transfers"] = []
    words = Page(built(tmp_path, [made]).read_text(encoding="utf-8")).words
    assert "Figure download_time is not drawn: no transfer was begun." in spaced(words)


def test_repetitions_are_summed_up(tmp_path: Path) -> None:
    path = worded(tmp_path, [run("50p", seed) for seed in (1, 2, 3)])
    words = spaced(Page(path.read_text(encoding="utf-8")).words)
    # The longest answers are 60, 61 and 62 ms: mean 61, sem 1/sqrt(3), t(0.975, 2) = 4.303: half-width 2.484.
    assert "61 ± 2.5" in words
    # And of their means, 40, 40.25 and 40.5 ms, 0.6210.
    assert "about 40 ms rtt.mean_ms at 50p 35 to 45 ms 40.25 ± 0.62 ms ✓ reproduced" in words
    assert "half of the 95 % confidence interval of the mean over repetitions, drawn as a line" in words
    assert "bufferscope run two-queues --seed 1 --repeat 3" in words


def test_a_warning_of_many_runs_stands_there_once(tmp_path: Path) -> None:
    warned = [run("50p", seed, warnings=["late", "early"][: 3 - seed]) for seed in (1, 2, 3)]
    words = spaced(Page(worded(tmp_path, warned).read_text(encoding="utf-8")).words)
    assert "Warning of 2 of 3 runs: late" in words
    assert "Warning of 1 of 3 runs: early" in words
    assert words.count("Warning") == 2


def test_a_kernel_that_was_chosen_is_named_in_the_command(tmp_path: Path) -> None:
    chosen = run("50p", engine="guest", summary={"kernel": "6.12.38+deb13-cloud-amd64"})
    words = spaced(Page(worded(tmp_path, [chosen]).read_text(encoding="utf-8")).words)
    assert "run two-queues --seed 1 --engine guest --kernel 6.12.38+deb13-cloud-amd64" in words


def test_the_kernel_that_is_taken_by_default_needs_no_name(tmp_path: Path) -> None:
    default = run("50p", engine="guest", summary={"kernel": "6.1.0-56-cloud-amd64"})
    assert "--kernel" not in Page(worded(tmp_path, [default]).read_text(encoding="utf-8")).words


def test_words_of_a_command_are_quoted_for_the_shell(tmp_path: Path) -> None:
    odd = run("50p", engine="guest", summary={"kernel": "6.12 $(reboot)"}, overrides=["a={b='c'}"])
    words = spaced(Page(worded(tmp_path, [odd]).read_text(encoding="utf-8")).words)
    command = words.split("Run it again: ")[1].split(" bufferscope 0.1.0")[0]
    assert shlex.split(command)[5:] == ["--engine", "guest", "--kernel", "6.12 $(reboot)", "--set", "a={b='c'}"]


def test_overrides_and_warnings_are_shown(tmp_path: Path) -> None:
    path = worded(tmp_path, [run("50p", overrides=["duration=2s"], warnings=["the clock was coarse"])])
    words = spaced(Page(path.read_text(encoding="utf-8")).words)
    assert "Changed for these runs: duration=2s" in words
    assert words.count("Two queues, with duration=2s") == 2, "the titles of the window and of the page"
    assert "the clock was coarse" in words
    assert "bufferscope run two-queues --seed 1 --set duration=2s" in words


def test_metrics_that_the_engine_cannot_measure_are_named(tmp_path: Path) -> None:
    path = worded(tmp_path, [run("50p", engine="guest", summary={"not_measured": ["sojourns"]})])
    words = spaced(Page(path.read_text(encoding="utf-8")).words)
    assert "Not measured by the engine that made these runs: sojourn.r1>h2.p<N>_ms, sojourn.h2>r1.p<N>_ms." in words


def test_tables_that_are_not_recorded_are_named(tmp_path: Path) -> None:
    made = run("50p")
    made.scenario |= {"record": ["probes", "queues", "drops"], "flows_interval_ns": 10**9}
    words = spaced(Page(worded(tmp_path, [made]).read_text(encoding="utf-8")).words)
    assert "Not recorded, so metrics computed from them are missing: flows, transfers, sojourns" in words
    assert "recorded probes, queues, drops" in words
    assert "10 ms (queues), 1 s (flows)" in words


def test_nothing_in_an_experiment_file_can_act(tmp_path: Path) -> None:
    words = document(
        title=EVIL,
        source=EVIL,
        description=EVIL,
        notes=f"# {EVIL}\n\n[x](javascript:alert(3)) ![y](http://e.org/i.png)",
    )
    says = [expectation("rtt.mean_ms", EVIL, [0, 1], [(FIFTY, None)], differs=EVIL)]
    evil = run("50p", document=words, expectations=says, overrides=[EVIL], warnings=[EVIL])
    evil.point = {"link.bottleneck.queue.limit": EVIL}
    page = Page(built(tmp_path, [evil]).read_text(encoding="utf-8"))
    assert EVIL in page.words  # shown as it is
    assert not [tag for tag, attributes in page.elements if any(name.startswith("on") for name in attributes)]
    # A point of this name has no size, so it has no place in figures over sizes.
    drawn = [name for name in DRAWN if not name.endswith("_by_size")]
    assert len(page.all("figure", "id")) == len(drawn)
    assert {link for link in page.all("a", "href") if ":" in link} == {"http://e.org/i.png"}  # a link, not a picture
    data = [attributes for _, attributes in page.elements if attributes.get("class") == "data"]
    assert len([tag for tag, _ in page.elements if tag == "script"]) == len(drawn) + len(data) + 3
    assert len([tag for tag, _ in page.elements if tag == "title"]) == 1


def test_several_experiments_share_a_page(tmp_path: Path) -> None:
    first = stored([run(label, document=document(figures=["rtt"])) for label in LABELS], tmp_path / "results")
    second = stored(
        [run("50p", experiment="other", document=document(title="Another", figures=["rtt"]))], tmp_path / "results"
    )
    path = report.build([first, second], tmp_path / "report")
    page = Page(path.read_text(encoding="utf-8"))
    assert "2 experiments, 3 runs" in page.words
    assert page.all("section", "id") == ["verdicts", "other", "two-queues", "meanings"]
    assert report.build([second], tmp_path / "report") == path  # a page is replaced


def test_the_page_of_an_own_experiment_has_no_empty_parts(tmp_path: Path) -> None:
    bare = {"title": "My lab", "figures": [], "sweep": {}}
    made = run("50p", experiment="my-lab", document=bare, expectations=[])
    made.point = {}
    made.rows["transfers"] = made.rows["flows"] = []
    page = Page(built(tmp_path, [made]).read_text(encoding="utf-8"))
    words = spaced(page.words)
    assert page.all("section", "id") == ["my-lab", "meanings"]
    for absent in ("Verdicts", "statement", "after", "Point", "Notes", "Contents", "not drawn", "Changed", "Warning"):
        assert absent not in words, absent
    assert not [attributes for tag, attributes in page.elements if tag == "nav"]
    assert words.count("My lab") == 2  # the window's title and the page's
    text = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<(?:p|h[1-6]|ul|ol|dl|figure|section|th|table|tbody)(?: [^>]*)?>\s*</", text) == []


def test_experiments_stand_in_teaching_order(tmp_path: Path) -> None:
    names = ["my-lab", "ucas-mitigate", "another", "ucas-reproduce"]
    results = [
        stored([run("50p", experiment=name, document=document(title=name, figures=["rtt"]))], tmp_path / "results")
        for name in names
    ]
    page = Page(report.build(results, tmp_path / "report").read_text(encoding="utf-8"))
    sections = [name for name in page.all("section", "id") if name in names]
    assert sections == ["ucas-reproduce", "ucas-mitigate", "another", "my-lab"]
    contents = [link for link in page.all("a", "href") if link.strip("#") in names]
    assert contents[: len(names)] == [f"#{name}" for name in sections]


def test_the_experiments_of_a_document_are_together(tmp_path: Path) -> None:
    papers = {"ucas-reproduce": "A", "ucas-queue-sizes": "B", "ucas-mitigate": "A", "my-lab": "C"}
    results = [
        stored([run("50p", experiment=name, document=document(figures=["rtt"], title=name, document=paper))], tmp_path)
        for name, paper in papers.items()
    ]
    page = Page(report.build(results, tmp_path / "report").read_text(encoding="utf-8"))
    sections = [name for name in page.all("section", "id") if name in papers]
    assert sections == ["ucas-reproduce", "ucas-mitigate", "ucas-queue-sizes", "my-lab"]
    contents = spaced(page.words.split("Contents")[1])
    assert "Verdicts A ucas-reproduce ucas-mitigate B ucas-queue-sizes C my-lab What the metrics mean" in contents


def test_a_part_of_an_experiment_is_named_as_such(tmp_path: Path) -> None:
    made = stored([run("50p", document=document(figures=["rtt"]))], tmp_path / "results")
    path = report.build([made], tmp_path / "report", brief={"two-queues": "1 of 5 repetitions"})
    assert "Run in brief: 1 of 5 repetitions." in spaced(Page(path.read_text(encoding="utf-8")).words)


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one result"):
        report.build([], tmp_path)
    assert not list(tmp_path.iterdir())


def test_markdown_is_a_safe_subset() -> None:
    assert str(markdown("*a* **b** `c`")) == "<p><em>a</em> <strong>b</strong> <code>c</code></p>\n"
    assert "<h4>" in markdown("# Heading")
    assert "<table>" in markdown("| a |\n|---|\n| 1 |")
    assert "<b>" not in markdown("<b>x</b>")
    assert "<img" not in markdown("![x](http://example.org/x.png)")
    assert "href" not in markdown("[x](javascript:alert(1))")
    assert 'href="https://example.org"' in markdown("[x](https://example.org)")


@given(st.recursive(st.text(), lambda inner: st.dictionaries(st.text(), inner, max_size=3), max_leaves=5))
def test_json_in_a_script_element_never_ends_it(value: object) -> None:
    text = script_json(value)
    assert "<" not in text
    assert json.loads(text) == value


@given(st.text())
def test_a_data_url_holds_the_whole_text(text: str) -> None:
    safe = text.encode("utf-8", "ignore").decode()
    url = data_url(safe)
    assert unquote(url.removeprefix("data:image/svg+xml,")) == safe
    assert not re.search(r'[<>"#\n]', url)


@given(
    st.floats(-1e9, 1e9), st.floats(0, 1e9), st.none() | st.floats(-1e9, 1e9), st.sampled_from(["both", "low", "high"])
)
def test_the_gauge_shows_inside_as_inside(low: float, width: float, measured: float | None, ends: str) -> None:
    band = (low if ends != "high" else float("-inf"), low + width if ends != "low" else float("inf"))
    shown = gauge(*band, measured)
    assert shown is not None
    assert 0 <= shown.start <= shown.start + shown.width <= GAUGE + 0.1
    if measured is None:
        assert shown.mark is None
    elif band[0] <= measured <= band[1]:
        assert shown.mark is not None
        assert shown.start - 0.1 <= shown.mark <= shown.start + shown.width + 0.1


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_the_gauge_shows_the_whole_interval_around_its_mark(
    low: float, width: float, measured: float, reach: float
) -> None:
    shown = gauge(low, low + width, measured, reach)
    assert shown is not None
    assert shown.mark is not None
    assert shown.reach is not None
    assert 0 <= shown.reach[0] <= shown.mark <= shown.reach[1] <= GAUGE
    assert shown.mark - shown.reach[0] == pytest.approx(shown.reach[1] - shown.mark, abs=0.21)


def test_a_band_without_ends_has_no_gauge() -> None:
    assert gauge(float("-inf"), float("inf"), 3) is None


def test_directions_of_a_link_that_differ_at_any_point_have_rows_of_their_own(tmp_path: Path) -> None:
    alike, unlike = run("50p"), run("100p")
    unlike.scenario["links"][1]["forward"]["queue"] = {"qdisc": "codel", "limit_packets": 1000, "target_ns": 5_000_000}
    words = spaced(Page(worded(tmp_path, [alike, unlike]).read_text(encoding="utf-8")).words)
    assert "r1>h2 10 Mbit/s 5 ms 50ppfifo, limit 50 packets100pcodel, limit 1 000 packets, target 5 ms" in words
    assert "h2>r1 10 Mbit/s 5 ms 50ppfifo, limit 50 packets100ppfifo, limit 100 packets" in words
    assert "r1 ↔ h2" not in words
