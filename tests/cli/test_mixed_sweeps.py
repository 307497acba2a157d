"""Runs of one directory that differ in what they swept: each command and the page take them together.

`--set` beside a `[sweep]`, a sweep from `--set`, and a file that was edited between two runs leave such directories.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from laboratory import ROUTED, Answer, write

import bufferscope as bs
from bufferscope.figures.source import NoDataError, points
from bufferscope.report.parameters import tables

Cli = Callable[..., Answer]
FIGURES = ["rtt", "rtt_matrix", "rtt_by_size", "goodput_delay"]
LAB = ROUTED.replace('figures = ["rtt"]', f"figures = {FIGURES}").replace("20p", "200p").replace('"2s"', '"1s"')
SWEPT = """
[sweep]
"link.line.queue.limit" = ["100p", "200p"]
"""
DELAYS = 'sweep.link.line.delay=["1ms", "20ms"]'
MIXTURES: tuple[tuple[str, ...], ...] = (
    (),
    (DELAYS,),
    ('sweep.traffic.bulk.congestion={Reno = "reno", CUBIC = "cubic"}',),
    ("link.line.queue.limit=50p",),
    ("link.line.queue.limit=50p", DELAYS),
    ('sweep.link.line.rate=["5mbit", "20mbit"]', "traffic.bulk.flows=2", "link.line.queue.limit=50p"),
)
"""The overrides of each run of the lab; together they sweep different keys, and none."""


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored runs of all mixtures, in one directory of the experiment."""
    directory = tmp_path_factory.mktemp("mixed")
    lab = write(directory, LAB + SWEPT)
    for overrides in MIXTURES:
        bs.run(lab, overrides=overrides, out=directory / "results")
    write(directory, LAB)
    bs.run(lab, overrides=["link.line.delay=2ms"], repeat=2, out=directory / "results")
    return directory / "results" / "lab"


def test_every_command_takes_the_whole_mixture(mixed: Path, cli: Cli) -> None:
    for command in ("show", "compare", "explain --no-cures", "export --format csv"):
        name, *options = command.split()
        answer = cli(name, str(mixed), *options)
        assert answer.status == 0, f"{command}: {answer.err}"
    assert (Path("comparison") / "index.html").exists()
    assert bs.load(mixed).report("page").exists()


@pytest.mark.parametrize("swept", ["delay-20ms", "congestion-CUBIC"])
def test_cures_are_tried_at_the_point_of_a_sweep_from_the_command_line(mixed: Path, cli: Cli, swept: str) -> None:
    (mixed.parents[1] / "lab.toml").write_text(LAB + SWEPT, encoding="utf-8")
    (run,) = mixed.glob(f"limit-200p_{swept}-*")
    answer = cli("explain", str(run))
    assert answer.status == 0, answer.err
    assert "(simulated)" in answer.out, answer.out


@settings(max_examples=5, phases=(Phase.explicit, Phase.generate))
@given(data=st.data())
def test_any_subset_of_the_mixture_can_be_read_drawn_and_exported(
    mixed: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    stored = sorted(mixed.iterdir())
    chosen = data.draw(st.lists(st.sampled_from(stored), min_size=1, max_size=5, unique=True))
    directory = tmp_path_factory.mktemp("subset")
    for run in chosen:
        shutil.copytree(run, directory / "lab" / run.name)
    result = bs.load(directory / "lab")
    assert sorted(run.path.name for run in result.runs) == sorted(run.name for run in chosen)
    assert len(bs.explain(result)) == len(chosen)
    assert result.metrics["metric"].n_unique() > 10
    assert all(table.rows for table in tables(points(result)))
    for name in FIGURES:
        with suppress(NoDataError):
            assert result.figures[name].to_dict()
    if len(set(result.variation.labels)) > 1:
        assert bs.compare(directory / "lab").table.height > 10
