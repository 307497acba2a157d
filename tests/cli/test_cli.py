"""The command line, except for the handling of mistakes."""

import json
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import SMALL, SWEEP, TABLES, Answer, write

from bufferscope import __version__, catalogue
from bufferscope.base.commit import commit

Cli = Callable[..., Answer]

EXPECTATION = """
[[expect]]
metric = "rtt.max_ms"
says = "{says}"
band = [{low}, {high}]
"""


def test_without_a_command_it_shows_what_there_is(cli: Cli) -> None:
    answer = cli()
    assert answer.status == 0
    for command in ("list", "show", "run", "compare", "export", "reproduce", "schema", "doctor"):
        assert re.search(rf"^\W*{command}\b", answer.out, re.MULTILINE), command


def test_version(cli: Cli) -> None:
    answer = cli("--version")
    known = f" (commit {commit()})" if commit() else ""
    assert answer == Answer(0, f"bufferscope {__version__}{known}\n", "")


@pytest.mark.parametrize("command", ["run", "reproduce", "show", "compare", "export"])
def test_help_teaches_by_example(cli: Cli, command: str) -> None:
    answer = cli(command, "--help")
    assert answer.status == 0
    assert f"bufferscope {command} " in answer.out.split("Examples")[1]


def test_list_names_the_whole_catalogue(cli: Cli) -> None:
    answer = cli("list")
    assert [name for name in catalogue() if name not in answer.out] == []
    assert [entry["name"] for entry in json.loads(cli("list", "--json").out)] == catalogue()


def test_show_prints_an_experiment_that_runs(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, cli("show", "ucas-reproduce").out, "mine.toml")
    answer = cli("run", "mine.toml", "--set", "duration=1s", "--quiet")
    assert answer == Answer(0, "", "")
    assert len(list((tmp_path / "results" / "mine").iterdir())) == 2  # with segmentation offload and without


def test_show_sums_up_a_stored_run(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    run = json.loads(cli("run", "lab.toml", "--json").out)["runs"][0]
    shown = cli("show", run["path"])
    assert shown.status == 0
    assert "A small lab" in shown.out
    assert [name for name in run["metrics"] if name not in shown.out] == []
    assert json.loads(cli("show", run["path"], "--json").out)["metrics"] == run["metrics"]


def test_what_is_not_recorded_is_told_and_not_zero(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + EXPECTATION.format(says="1 ms", low=0, high=1))
    changes = ("--set", 'record=["flows", "queues"]', "--set", "sample.flows=1s")
    (run,) = json.loads(cli("run", "lab.toml", "--json", *changes).out)["runs"]
    assert run["not_recorded"] == [
        "probes",
        "drops",
        "transfers",
        "sojourns",
        "capacity",
        "estimates",
        "round_trips",
        "retransmissions",
        "one_way",
    ]
    assert not [name for name in run["metrics"] if name.startswith(("rtt", "drops"))]
    shown = cli("show", run["path"])
    assert re.search(r"metrics of probes +not recorded", shown.out)
    assert re.search(r"Rows +probes 0, flows \d, queues \d\d\d", shown.out)

    write(tmp_path, 'record = ["flows", "queues"]\n' + SMALL + EXPECTATION.format(says="1 ms", low=0, high=1))
    told = cli("run", "lab.toml", "--json", "--strict")
    assert 'probes are not recorded: record = ["flows", "queues"]' in json.loads(told.out)["expectations"][0]["reason"]
    assert told.status == 1


def test_show_lists_the_runs_of_a_directory(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    for limit in ("20p", "40p"):
        assert cli("run", "lab.toml", "--quiet", "--set", f"link.line.queue.limit={limit}").status == 0
    for directory in ("results/lab", "results"):
        shown = cli("show", directory)
        assert shown.status == 0
        assert "link.line.queue.limit" in shown.out
        assert [line.split()[:2] for line in shown.out.splitlines() if "results/lab" in line] == [
            ["20p", "sim"],
            ["40p", "sim"],
        ]
    listed = json.loads(cli("show", "results/lab", "--json").out)["runs"]
    assert [run["settings"] for run in listed] == [{"link.line.queue.limit": limit} for limit in ("20p", "40p")]


def test_names_of_runs_are_whole_on_80_columns(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    write(tmp_path, SMALL)
    changes = ("--set", "link.line.forward.queue={qdisc='pfifo', limit='7p'}")
    for more in ((), changes):
        assert cli("run", "lab.toml", "--quiet", *more).status == 0
    shown = cli("show", str(tmp_path / "results")).out.splitlines()
    assert max(map(len, shown)) <= 80
    runs = sorted(path.name for path in (tmp_path / "results" / "lab").iterdir())
    assert sorted(line.split()[-1] for line in shown if line.split()[-1:] and line.split()[-1] in runs) == runs
    assert "forward." in [line.strip() for line in shown]
    assert f"{tmp_path}/results/lab/" in "".join(line.strip() for line in shown)


def test_a_run_is_drawn_as_a_page_unless_told_not_to(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace('figures = ["rtt"]\n', ""))
    page = tmp_path / "report" / "lab" / "index.html"
    for quiet in ("--quiet", "--json", "--no-report"):
        assert cli("run", "lab.toml", quiet).status == 0
        assert not page.exists(), quiet
    answer = cli("run", "lab.toml")
    assert answer.out.splitlines()[-1] == f"The page: {page}"
    fitting = {f"lab-{name}" for name in ("queue_length", "rtt", "cwnd", "goodput")}
    assert set(re.findall('<figure id="([^"]*)"', page.read_text(encoding="utf-8"))) == fitting
    assert not (page.parent / "figures").exists()
    assert json.loads(cli("run", "lab.toml", "--json", "--report", "mine").out)["report"] == "mine/index.html"
    assert (tmp_path / "mine" / "index.html").is_file()


def test_stills_are_drawn_only_where_asked_for(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    assert cli("run", "lab.toml", "--stills").status == 0
    figures = tmp_path / "report" / "lab" / "figures"
    assert {file.name for file in figures.iterdir()} == {"lab-rtt.svg", "lab-rtt.png"}
    for silent in ("--no-report", "--json", "--quiet"):
        answer = cli("run", "lab.toml", "--stills", silent)
        assert answer.status == 2, silent
        assert "--stills draws the pictures of a page" in answer.err


def test_the_result_is_printed_before_its_page_is_made(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    (tmp_path / "occupied").write_text("a file, where a directory is needed", encoding="utf-8")
    answer = cli("run", "lab.toml", "--report", "occupied/page")
    assert answer.status != 0
    assert "cannot write the report here" in answer.err
    assert "RTT p50" in answer.out
    assert "Stored in results/lab/" in answer.out
    assert "The page" not in answer.out


def test_repetitions_are_summed_up_and_a_plain_finding_is_told(cli: Cli) -> None:
    answer = cli("run", "ucas-reproduce", "--repeat", "3", "--no-report", "--set", "tcp.gso_max_segs=1")
    (row,) = [line for line in answer.out.splitlines() if " tcp.gso_max_segs=1 " in line]
    assert "\N{PLUS-MINUS SIGN}" in row
    assert re.search(r"^The queue adds \d\d.ms to the path's 20.ms \(median\); all of it in r1>h2\.$", answer.out, re.M)


CALL = """
[[traffic]]
name = "call"
kind = "voip"
from = "h1"
to = "h2"

[[traffic]]
name = "names"
kind = "dns"
from = "h1"
to = "h2"

[[traffic]]
name = "pages"
kind = "web"
from = "h2"
to = "h1"
bytes = "50kb"
interval = "500ms"
"""


def test_the_table_shows_what_matters_for_the_traffic(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + CALL)
    shown = " ".join(cli("run", "lab.toml", "--no-report").out.split())
    for heading in ("RTT p50", "call MOS", "pages mean", "names p95", "bulk (Mbit/s)", "pages (Mbit/s)"):
        assert heading in shown, heading
    assert "Jain" not in shown, "a single flow is fair to itself"


def test_schema_is_json_schema_of_the_files(cli: Cli) -> None:
    schema = json.loads(cli("schema").out)
    assert {"title", "link", "traffic", "sweep", "expect"} <= schema["properties"].keys()


def test_doctor_tells_what_is_there_and_what_is_not(cli: Cli) -> None:
    engines = {engine["engine"]: engine for engine in json.loads(cli("doctor", "--json").out)["engines"]}
    assert engines.keys() >= {"sim", "guest", "host"}
    assert engines["sim"]["state"] == "ready"
    assert {check["what"] for check in engines["live"]["checks"]} >= {"bufferscope-live", "answers of hops", "pings"}
    table = cli("doctor")
    assert table.status == 0
    for engine in engines.values():
        assert f"engine {engine['engine']}: {engine['state']}" in table.out
        assert (engine["install"] or "") in table.out


def test_json_is_one_document_of_the_documented_shape(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + SWEEP)
    answer = cli("run", "lab.toml", "--json", "--repeat", "2", "--seed", "7")
    assert (answer.status, answer.err) == (0, "")
    document = json.loads(answer.out)
    assert list(document) == ["experiment", "runs", "expectations"]
    assert document["experiment"] == "lab"
    points = [(run["point"]["link.line.queue.limit"], run["seed"]) for run in document["runs"]]
    assert points == [("10p", 7), ("10p", 8), ("20p", 7), ("20p", 8), ("40p", 7), ("40p", 8)]
    for run in document["runs"]:
        assert {"engine", "seed", "point", "metrics", "warnings", "path"} <= run.keys()
        assert run["metrics"]["rtt.sent"] == 20
        assert {file.name for file in Path(run["path"]).iterdir()} == {"run.json", *(f"{t}.parquet" for t in TABLES)}


def test_a_run_is_told_as_a_table_and_where_it_is(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + SWEEP)
    answer = cli("run", "lab.toml")
    assert answer.status == 0
    for limit in ("10p", "20p", "40p"):
        assert f"link.line.queue.limit = {limit}" in answer.out
    assert "Stored in results/lab/" in answer.out
    assert "3 of 3 runs done" in answer.err.splitlines()


@pytest.mark.parametrize(("high", "verdict", "status"), [(1000, "reproduced", 0), (1, "not reproduced", 1)])
def test_strict_fails_when_an_expectation_does(cli: Cli, tmp_path: Path, high: int, verdict: str, status: int) -> None:
    write(tmp_path, SMALL + EXPECTATION.format(says="as long as the queue", low=0, high=high))
    answer = cli("run", "lab.toml", "--json", "--strict")
    assert answer.status == status
    assert json.loads(answer.out)["expectations"][0]["verdict"] == verdict
    assert cli("run", "lab.toml", "--quiet").status == 0


def test_repetitions_give_a_measurement_its_interval(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + EXPECTATION.format(says="as long as the queue", low=0, high=1000))
    once = cli("run", "lab.toml", "--json")
    assert json.loads(once.out)["expectations"][0]["reach"] is None
    document = json.loads(cli("run", "lab.toml", "--json", "--repeat", "3").out)
    found = document["expectations"][0]
    repetitions = [run["metrics"][found["metric"]] for run in document["runs"]]
    assert found["measured"] == pytest.approx(statistics.fmean(repetitions))
    # t(0.975, 2) = 4.302653
    assert found["reach"] == pytest.approx(4.302653 * statistics.stdev(repetitions) / math.sqrt(3))
    told = cli("run", "lab.toml", "--repeat", "3").out
    assert f"{found['measured']:.4g} ± " in told.replace("\N{NO-BREAK SPACE}", " ")
    assert "Measured: means over repetitions ± half the width of their 95 % confidence interval." in told
    assert "Measured: means" not in cli("run", "lab.toml").out


def test_strict_fails_when_the_metric_of_an_expectation_was_not_measured(cli: Cli, tmp_path: Path) -> None:
    """The ping exists, and therefore its metrics, but no probe is sent between the warm-up and the end."""
    text = SMALL.replace('duration = "2s"', 'duration = "2s"\nwarmup = "1s"') + 'stop = "500ms"\n'
    write(tmp_path, text + EXPECTATION.format(says="as long as the queue", low=0, high=1000))
    answer = cli("run", "lab.toml", "--json", "--strict")
    expectation = json.loads(answer.out)["expectations"][0]
    assert (expectation["verdict"], expectation["measured"]) == ("not applicable", None)
    assert answer.status == 1
    assert cli("run", "lab.toml", "--quiet").status == 0


def test_a_known_difference_is_not_a_failure(cli: Cli, tmp_path: Path) -> None:
    text = SMALL + EXPECTATION.format(says="1 ms", low=0, high=1) + 'differs = "the path alone takes 20 ms"\n'
    write(tmp_path, text)
    answer = cli("run", "lab.toml", "--strict")
    assert answer.status == 0
    assert "differs, cause not shown" in answer.out
    assert "the path alone takes 20 ms" in answer.out


def test_a_changed_experiment_is_measured_but_not_judged(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + EXPECTATION.format(says="1 ms", low=0, high=1))
    answer = cli("run", "lab.toml", "--set", "duration=1s", "--json", "--strict")
    assert answer.status == 0
    assert json.loads(answer.out)["expectations"][0]["verdict"] == "not applicable"


def test_a_changed_experiment_says_once_why_it_is_not_judged(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + EXPECTATION.format(says="1 ms", low=0, high=1) * 4)
    answer = cli("run", "lab.toml", "--set", "duration=1s")
    assert "not applicable" not in answer.out, "no row without a number"
    assert answer.out.count("--set duration=1s") == 1
    assert "4 expectations" in answer.out
    assert " duration=1s  " in answer.out, "the run's row names the change"


def test_square_brackets_are_text_like_any_other(cli: Cli, tmp_path: Path) -> None:
    write(
        tmp_path, SMALL.replace("A small lab", "A [bold]small[/] lab") + EXPECTATION.format(says="[/x]", low=0, high=1)
    )
    answer = cli("run", "lab.toml")
    assert answer.status == 0
    assert "A [bold]small[/] lab" in answer.out
    assert "[/x]" in answer.out


def test_reproduce_writes_the_page_and_says_what_was_reproduced(cli: Cli, tmp_path: Path) -> None:
    write(tmp_path, SMALL + EXPECTATION.format(says="as long as the queue", low=0, high=1000))
    answer = cli("reproduce", "lab.toml")
    assert answer.status == 0
    assert "reproduced" in answer.out
    assert str(tmp_path / "report" / "index.html") in answer.out
    assert "A small lab" in (tmp_path / "report" / "index.html").read_text()


def test_reading_only_the_beginning_of_the_output_is_no_mistake(tmp_path: Path) -> None:
    command = f"{sys.executable} -m bufferscope schema | head -c 1"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{", "")


def test_help_loads_no_library_that_it_does_not_need(tmp_path: Path) -> None:
    code = "import sys; from bufferscope.cli import run; run(['run', 'nope']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("'"))
    assert loaded & {"polars", "altair", "scipy", "numpy", "jinja2", "vl_convert"} == set()


def test_a_single_run_is_shown_without_the_libraries_of_repetitions_and_pictures(tmp_path: Path) -> None:
    lab = write(tmp_path, SMALL)
    commands = f"run(['run', {str(lab)!r}]); run(['show', 'results'])"
    code = f"import sys; from bufferscope.cli import run; {commands}; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "rtt" in done.stdout
    assert "'polars'" in done.stdout
    assert set(done.stdout.split("'")) & {"scipy", "vl_convert"} == set()
