"""Sections of a page: each has its own name, whatever the experiments are called, and files and links use it."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from reports import document, run, stored

from bufferscope import report
from bufferscope.report.anchors import PAGE_PARTS, SECTION_PARTS, anchors

NAMES = st.lists(
    st.sampled_from(["lab", "Lab", "lab-2", "lab-rtt", "lab-rtt-title", "why", "why-1", "..", "a/b", "x" * 200])
    | st.text(max_size=12),
    max_size=8,
)


def test_a_name_that_comes_twice_gets_a_number() -> None:
    assert anchors(["lab", "other", "lab", "lab"]) == ["lab", "other", "lab-2", "lab-3"]


def test_a_name_that_differs_by_case_alone_gets_a_number() -> None:
    assert anchors(["lab", "LAB"]) == ["lab", "LAB-2"]


def test_a_name_that_an_element_of_another_section_has_gets_a_number() -> None:
    assert anchors(["lab", "lab-metrics"]) == ["lab", "lab-metrics-2"]


def test_a_name_that_the_page_uses_is_set_apart() -> None:
    assert anchors(["why", "why-1", "whys"]) == ["experiment-why", "experiment-why-1", "whys"]


@given(NAMES)
def test_no_two_elements_share_an_id_and_no_anchor_is_a_path(names: list[str]) -> None:
    chosen = anchors(names)
    assert len(chosen) == len(names)
    ids = [f"{anchor}{part}".casefold() for anchor in chosen for part in ("", *(f"-{part}" for part in SECTION_PARTS))]
    assert len(ids) == len(set(ids))
    for anchor in chosen:
        assert re.fullmatch(r"[A-Za-z0-9._-]+", anchor)
        assert anchor.strip(".")
        assert anchor.partition("-")[0].casefold() not in PAGE_PARTS


def test_two_experiments_of_one_name_keep_their_own_figures_and_links(tmp_path: Path) -> None:
    first = run("50p", experiment="lab", document=document(title="First", figures=["rtt"]))
    second = run("100p", experiment="lab", document=document(title="Second", figures=["rtt"]))
    second.rows["probes"] = second.rows["probes"][:2]
    results = [stored([each], tmp_path / directory) for each, directory in ((first, "a"), (second, "b"))]
    text = report.build(results, tmp_path / "report", stills=True).read_text(encoding="utf-8")
    pictures = {path.name: path.read_bytes() for path in (tmp_path / "report" / "figures").glob("*.svg")}
    assert pictures.keys() == {"lab-rtt.svg", "lab-2-rtt.svg"}
    assert pictures["lab-rtt.svg"] != pictures["lab-2-rtt.svg"]
    assert '<section class="experiment" id="lab" ' in text
    assert '<section class="experiment" id="lab-2" ' in text
    assert 'href="figures/lab-2-rtt.svg"' in text


def test_an_experiment_named_like_a_path_stays_within_the_report(tmp_path: Path) -> None:
    made = stored([run("50p", document=document(figures=["rtt"]))], tmp_path / "results")
    made.runs[0].meta["experiment"] = "../../escaped"  # as a `run.json` from elsewhere may say
    report.build([made], tmp_path / "report", stills=True)
    assert {path.name for path in (tmp_path / "report" / "figures").iterdir()} == {
        "escaped-rtt.svg",
        "escaped-rtt.png",
    }
    assert {path.name for path in tmp_path.iterdir()} == {"results", "report"}
