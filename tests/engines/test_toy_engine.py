"""A further engine is one package and one line: everything else takes it without knowing its name."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from laboratory import ROUTED, Answer, write

import bufferscope as bs
from bufferscope.engines import REGISTRY

PACKAGE = '''\
"""An engine for this test: the simulator under another name, as a kernel that sees no flows of drops."""

from bufferscope.engines.doctor.findings import EngineCheck
from bufferscope.engines.engine import Engine
from bufferscope.engines.sim import engine

ENGINE = Engine(
    "toy",
    "a toy: the simulator under another name",
    engine.run,
    label="Toy",
    checks=lambda _system: [EngineCheck("spring", "ready", "wound up")],
    refusals=engine.refusals,
    identity=lambda: "toy 1",
    runs_on="the toy's kernel",
)
'''


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package, and the line that names it."""
    package = tmp_path / "packages" / "toy_engine"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "toy_engine", raising=False)
    monkeypatch.setitem(REGISTRY, "toy", importlib.import_module("toy_engine").ENGINE)


@pytest.mark.usefixtures("toy")
def test_every_command_takes_an_engine_that_was_only_registered(cli: Callable[..., Answer], tmp_path: Path) -> None:
    lab = str(write(tmp_path, ROUTED))

    doctor = json.loads(cli("doctor", "--json").out)["engines"]
    assert [check["what"] for each in doctor if each["engine"] == "toy" for check in each["checks"]] == ["spring"]
    assert "toy (a toy: the simulator under another name)" in cli("run", lab, "--engine", "nothing").err

    made = cli("run", lab, "--engine", "sim", "--engine", "toy")
    assert made.status == 0, made.err
    page = (tmp_path / "report" / "lab" / "index.html").read_text()
    assert "engine toy" in page
    assert "--engine toy" in page, "the page has the command that makes its runs again"

    runs = {run.engine: run for run in bs.load("results/lab").runs}
    assert list(runs) == ["sim", "toy"]
    assert dict(runs["toy"].metrics) == dict(runs["sim"].metrics)

    compared = cli("compare", str(runs["sim"].path), str(runs["toy"].path))
    assert compared.status == 0, compared.err
    explained = cli("explain", str(runs["toy"].path), "--json")
    assert explained.status == 0, explained.err
    assert "r1>h2" in explained.out
    exported = cli("export", str(runs["toy"].path), "--format", "csv", "--out", "tables")
    assert exported.status == 0, exported.err
    assert ",toy," in next((tmp_path / "tables").glob("*probes.csv")).read_text()

    agreed = cli("agree", lab, "--reference", "toy", "--repeat", "2", "--json")
    assert agreed.status == 0, agreed.err
    assert json.loads(agreed.out)["engines"] == ["sim", "toy"]
    reused = cli("run", lab, "--engine", "toy", "--reuse", "--no-report")
    assert reused.status == 0, reused.err


@pytest.mark.usefixtures("toy")
def test_the_packets_of_a_kernel_that_cannot_be_captured_are_refused_with_the_remedy(
    cli: Callable[..., Answer], tmp_path: Path
) -> None:
    cli("run", str(write(tmp_path, ROUTED)), "--engine", "toy", "--no-report")
    answer = cli("export", "results/lab", "--format", "pcapng")
    assert answer.status != 0
    assert "made by the engine toy" in answer.err
