"""The sample files that README.md names are what scripts/samples.py makes, and its commands work on them."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import Answer

import bufferscope as bs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
CAPTURE, FLENT = "photos.pcapng.gz", "evening.flent.gz"
LARGEST_BYTES = 150_000

Cli = Callable[..., Answer]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("samples")
    subprocess.run([sys.executable, str(ROOT / "scripts" / "samples.py"), str(directory)], check=True)
    return directory


def inspected(cli: Cli, file: Path, name: str) -> dict[str, float]:
    answer = cli("inspect", str(file), "--name", name, "--no-report", "--json")
    assert answer.status == 0, answer.err
    return dict(bs.load(f"results/{name}").runs[0].metrics)


@pytest.mark.parametrize("name", [CAPTURE, FLENT])
def test_they_are_small(name: str) -> None:
    assert (EXAMPLES / name).stat().st_size < LARGEST_BYTES


def test_the_capture_is_what_the_script_makes(cli: Cli, made: Path) -> None:
    stored, fresh = inspected(cli, EXAMPLES / CAPTURE, "stored"), inspected(cli, made / CAPTURE, "fresh")
    assert stored == pytest.approx(fresh, rel=0.02, nan_ok=True)


def test_the_capture_shows_what_its_file_says(cli: Cli) -> None:
    shown = inspected(cli, EXAMPLES / CAPTURE, "stored")
    (run,) = bs.run(EXAMPLES / "photos.toml", out="true").runs
    assert shown["rtt.p50_ms"] == pytest.approx(run.metrics["rtt.p50_ms"], rel=0.01)
    # A buffer of 96 KiB at 2 Mbit/s lasts 393 ms, and the path takes 28 ms.
    assert 380 < shown["rtt.max_ms"] < 425


def test_flents_file_is_what_the_script_makes(cli: Cli, made: Path) -> None:
    found = []
    for name, file in (("stored", EXAMPLES / FLENT), ("fresh", made / FLENT)):
        assert cli("import", str(file), "--name", name, "--quiet").status == 0
        found.append(dict(bs.load(f"results/{name}").runs[0].metrics))
    stored, fresh = found
    assert stored == pytest.approx(fresh, rel=0.02, nan_ok=True)


def test_the_commands_of_the_readme_work_and_explain_the_queue(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    steps = [
        line.removeprefix("$ bufferscope ") for line in text.splitlines() if "docs/examples/" in line and ".gz" in line
    ]
    assert steps == [f"inspect docs/examples/{CAPTURE}", f"import docs/examples/{FLENT}"]
    for step in [steps[0], "explain results/photos --json", steps[1]]:
        answer = cli(*step.split())
        assert answer.status == 0, answer.err
        if step.startswith("explain"):
            assert json.loads(answer.out)
