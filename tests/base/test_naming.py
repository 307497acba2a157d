"""The names of metrics: each has only one meaning and one spelling."""

import json
import re
from typing import Any

import pytest
from laboratory import SMALL

from bufferscope import ExperimentError, _core, metrics
from bufferscope.model import metric_names as naming
from bufferscope.model.experiment import Experiment
from bufferscope.model.metric_definitions import definition, definitions

EXPECT = '\n[[expect]]\nmetric = "{}"\nsays = "so much"\nband = [0, 1]\n'


def experiment(text: str = SMALL) -> Experiment:
    return Experiment("lab", text.encode(), "lab.toml")


def reserved() -> set[str]:
    """The names that no traffic may have, according to the schema, which the loader uses."""
    kinds: list[dict[str, Any]] = json.loads(_core.schema())["$defs"]["Traffic"]["oneOf"]
    names = [set(kind["properties"]["name"]["not"]["enum"]) for kind in kinds]
    assert all(each == names[0] for each in names)
    return names[0]


def test_no_traffic_may_have_a_name_that_gives_it_another_metrics_name() -> None:
    """Compare every definition whose name contains a traffic's name with every definition whose name does not."""
    fixed = [each.name for each in definitions() if "<traffic>" not in each.name]
    of_traffic = [re.escape(each.name) for each in definitions() if "<traffic>" in each.name]
    patterns = [name.replace("<traffic>", "([A-Za-z0-9][A-Za-z0-9_-]*)") for name in of_traffic]
    matches = (re.fullmatch(pattern, name) for pattern in patterns for name in fixed)
    assert reserved() == {match[1] for match in matches if match} == {"total"}


@pytest.mark.parametrize("name", sorted(reserved()))
def test_a_reserved_name_is_refused(name: str) -> None:
    with pytest.raises(ExperimentError, match=rf'traffic\.{name}\.name: found "{name}"; allowed: .*other than {name}'):
        experiment(SMALL.replace('"bulk"', f'"{name}"'))


@pytest.mark.parametrize("name", ["totals", "jain", "p95", "p95_s", "bulk_mbit", "Total", "line", "mean_ms", "h1"])
def test_with_any_other_name_every_metric_has_one_meaning(name: str) -> None:
    scenario = experiment(SMALL.replace('"bulk"', f'"{name}"')).points[0].scenario
    names = naming.names(scenario)
    assert len(set(names)) == len(names)
    for metric in names:
        asked = metric.replace("<N>", "95")
        assert naming.exists(scenario, asked), asked
        assert definition(asked) is not None


@pytest.mark.parametrize("percent", ["5", "50", "99", "0", "100"])
def test_a_percentile_by_its_number(percent: str) -> None:
    assert experiment(SMALL + EXPECT.format(f"rtt.p{percent}_ms")).expectations[0]["metric"] == f"rtt.p{percent}_ms"


@pytest.mark.parametrize("percent", ["05", "00", "005", "101", "-5", "9.5", "1e1", "\u0665", "", "<N>", "0x5"])
def test_a_percentile_has_no_other_spelling(percent: str) -> None:
    """Otherwise the check would accept the name of a metric that is never measured."""
    with pytest.raises(ExperimentError, match=r"expect\[1\].metric: found .* close: rtt\."):
        experiment(SMALL + EXPECT.format(f"rtt.p{percent}_ms"))
    assert metrics.definition(f"rtt.p{percent}_ms") is None or percent == "<N>"


def test_every_wrong_name_is_told_at_once() -> None:
    text = SMALL.replace('["rtt"]', '["rt", "cwn"]') + EXPECT.format("rtt.p05_ms") + EXPECT.format("rtt.mena_ms")
    with pytest.raises(ExperimentError) as refused:
        experiment(text)
    lines = str(refused.value).split("\n")
    assert [line.split(": found")[0] for line in lines] == [
        "lab.toml: figures[1]",
        "lab.toml: figures[2]",
        "lab.toml: expect[1].metric",
        "lab.toml: expect[2].metric",
    ]
