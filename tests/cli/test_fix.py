"""`bufferscope fix` without `--apply`: what it prints for each place of a queue, each device, and each kind of line."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cures
import livestreams
import pytest
from laboratory import Answer

import bufferscope as bs
from bufferscope import _core
from bufferscope.analysis.fixing.framing import FRAMINGS
from bufferscope.base.errors import InputError
from bufferscope.interop.live.measuring import read_events

Cli = Callable[..., Answer]
LINE = {"upload": "router_uplink", "download": "access_downlink"}
RATES: dict[str, Any] = {"upload": 9_652_667, "download": 38_610_667}
"""Goodput of links of 10 and 40 Mbit/s: 1448 of 1500 bytes."""


@pytest.fixture
def fix(cli: Cli, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """What `fix --json` says of a measurement with queues at these places."""

    def call(places: dict[str, str], *arguments: str, **more: Any) -> dict[str, Any]:
        run = cures.measured(tmp_path, places, **more)
        answer = cli("fix", str(run.path), "--json", *arguments)
        assert answer.status == 0, answer.err
        found: dict[str, Any] = json.loads(answer.out)
        return found

    return call


def lines(found: dict[str, Any]) -> list[str]:
    return [line for step in found["steps"] for line in step.get("commands", step.get("settings"))]


def test_a_linux_router_shapes_both_directions(fix: Callable[..., dict[str, Any]]) -> None:
    found = fix(LINE, "--device", "linux", "--link", "docsis", **RATES)
    # 99 % of the mean in 9 of 10 seconds, 1518 bytes on the link for 1448 of payload, less 5 % and 10 %.
    up, down = (
        int(0.99 * rate * 1518 / 1448 * part / 1000) for rate, part in zip(RATES.values(), (0.95, 0.9), strict=True)
    )
    assert lines(found) == [
        f"tc qdisc replace dev wan root cake bandwidth {up}kbit docsis nat",
        "ip link add name ifb4wan type ifb",
        "ip link set dev ifb4wan up",
        "tc qdisc replace dev wan handle ffff: ingress",
        "tc filter add dev wan parent ffff: protocol all prio 10 u32 match u32 0 0 action mirred egress redirect dev "
        "ifb4wan",
        f"tc qdisc replace dev ifb4wan root cake bandwidth {down}kbit docsis nat wash ingress",
    ]
    assert [(rate["direction"], rate["link_kbit"], rate["margin"]) for rate in found["rates"]] == [
        ("up", up, 0.05),
        ("down", down, 0.1),
    ]
    assert found["steps"][0]["undo"] == [
        *("tc qdisc del dev wan root", "tc qdisc del dev wan ingress", "ip link del dev ifb4wan")
    ]


def test_another_margin_changes_the_rate(fix: Callable[..., dict[str, Any]]) -> None:
    rates = fix(LINE, "--device", "linux", "--link", "docsis", "--margin", "3", **RATES)["rates"]
    on_link = [int(0.99 * RATES[way] * 1518 / 1448 * 0.97 / 1000) for way in ("upload", "download")]
    assert [(rate["margin"], rate["link_kbit"]) for rate in rates] == [(0.03, kbit) for kbit in on_link]


def test_only_the_direction_with_a_queue_is_shaped(fix: Callable[..., dict[str, Any]]) -> None:
    found = fix({"upload": "router_uplink"}, "--device", "linux", "--interface", "eth1", **RATES)
    assert [line.split()[:5] for line in lines(found)] == [["tc", "qdisc", "replace", "dev", "eth1"]]
    uci = lines(fix({"upload": "router_uplink"}, "--device", "openwrt", **RATES))
    assert "uci set sqm.@queue[0].download='0'" in uci


@pytest.mark.parametrize("link", FRAMINGS)
def test_every_kind_of_line_has_its_headers(fix: Callable[..., dict[str, Any]], link: str) -> None:
    framing = FRAMINGS[link]
    found = fix(LINE, "--device", "linux", "--link", link, **RATES)
    assert f"kbit {framing.cake} nat" in lines(found)[0]
    sqm = lines(fix(LINE, "--device", "openwrt", "--link", link, **RATES))
    assert f"uci set sqm.@queue[0].overhead='{framing.overhead}'" in sqm
    assert f"uci set sqm.@queue[0].linklayer='{'atm' if framing.atm else 'ethernet'}'" in sqm
    on_link = int(0.99 * RATES["upload"] * framing.bytes_of(1500) / 1448 * 0.95 / 1000)
    assert f"uci set sqm.@queue[0].upload='{on_link}'" in sqm


def test_a_kernel_without_cake_gets_a_shaper_before_another_queue(fix: Callable[..., dict[str, Any]]) -> None:
    kept = lines(fix(LINE, "--device", "linux", "--qdisc", "fq_codel", "--link", "docsis", **RATES))
    assert kept[0].startswith("tc qdisc replace dev wan root handle bf: tbf rate ")
    assert kept[0].endswith(" overhead 4"), "the 14 bytes of Ethernet are counted already"
    assert kept[1] == "tc qdisc replace dev wan parent bf:1 fq_codel"
    poor = lines(fix(LINE, "--device", "linux", "--qdisc", "bfifo", "--link", "pppoa-vcmux", **RATES))
    assert " linklayer atm" in poor[0]
    assert not any("fq_codel" in line or "cake" in line for line in poor)


@pytest.mark.parametrize("target", ["opnsense", "pfsense", "mikrotik"])
def test_other_routers_get_the_rate_of_packets(fix: Callable[..., dict[str, Any]], target: str) -> None:
    found = fix(LINE, "--device", target, **RATES)
    shown = "\n".join(lines(found))
    for way, part in (("upload", 0.95), ("download", 0.9)):
        assert str(int(0.99 * RATES[way] * 1500 / 1448 * part / 1000)) in shown


def test_rates_that_vary_get_the_settings_of_cake_autorate_and_no_number(fix: Callable[..., dict[str, Any]]) -> None:
    found = fix(LINE, "--device", "openwrt", variation=0.3, **RATES)
    settings = dict(line.split("=", 1) for line in found["steps"][1]["settings"])
    for way in ("dl", "ul"):
        rates = [int(settings[f"{which}_{way}_shaper_rate_kbps"]) for which in ("min", "base", "max")]
        assert rates == sorted(rates)
        assert settings[f"adjust_{way}_shaper_rate"] == "1"
    assert all("link_kbit" not in rate for rate in found["rates"])
    for target in ("opnsense", "pfsense", "mikrotik"):
        other = fix(LINE, "--device", target, variation=0.3, **RATES)
        assert other["steps"] == []
        assert "no fixed rate is right" in other["reasons"][0]
    poor = fix(LINE, "--device", "linux", "--qdisc", "bfifo", variation=0.3, **RATES)
    assert poor["steps"] == [], "cake-autorate needs cake"


def test_rates_that_vary_a_little_are_noted(fix: Callable[..., dict[str, Any]]) -> None:
    found = fix(LINE, "--device", "linux", variation=0.12, **RATES)
    assert any("varies by 12 %" in reason for reason in found["reasons"])
    assert "link_kbit" in found["rates"][0]


def test_the_device_with_the_queue_is_the_default(fix: Callable[..., dict[str, Any]]) -> None:
    for place, target in (
        ("router_uplink", "openwrt"),
        ("client_qdisc", "this-machine"),
        ("client_driver", "this-machine"),
        ("hop", "provider"),
        ("last_hop", "provider"),
    ):
        found = fix({"upload": place}, **RATES)
        assert (found["for"], found["queues"][0]["place"]) == (target, place)
        assert found["steps"], place


def test_each_place_has_its_cure(fix: Callable[..., dict[str, Any]]) -> None:
    wired = fix({"download": "router_downlink"}, "--device", "linux", "--interface", "br0", **RATES)
    assert lines(wired) == ["tc qdisc replace dev br0 root fq_codel"]
    wireless = fix({"download": "router_downlink"}, link="wifi", **RATES)
    assert "5 GHz" in " ".join(lines(wireless))
    assert not any("tc " in line for line in lines(wireless))
    radio = fix({"upload": "client_driver"}, link="wifi", **RATES)
    assert radio["steps"][0]["where"].startswith("Wi-Fi")
    for place in ("server_qdisc", "server_driver"):
        server = fix({"download": place}, **RATES)
        assert "On the server" in server["steps"][0]["where"]
    buffer = fix({"download": "server_send_buffer"}, **RATES)
    assert "tcp_notsent_lowat" in lines(buffer)[0]
    report = "\n".join(lines(fix({"upload": "hop"}, **RATES)))
    for text in ("203.0.113.1", "80.2 ms (95th percentile)", "RFC 8290"):
        assert text in report


def test_a_router_does_not_cure_this_machine(fix: Callable[..., dict[str, Any]]) -> None:
    found = fix({"upload": "client_qdisc"}, "--device", "linux", **RATES)
    assert found["steps"] == []
    assert "--device this-machine" in found["reasons"][0]


@pytest.mark.parametrize("outcome", ["managed", "clean", "not_filled", "other_traffic", "path_changed", "cannot_tell"])
def test_without_a_queue_there_is_no_command(cli: Cli, tmp_path: Path, outcome: str) -> None:
    events = cures.events({}, **RATES)
    for phase in events[-1]["verdict"]["phases"]:
        phase["outcome"] |= {"kind": outcome, "text": "This is why."}
    run = read_events(livestreams.lines(events).splitlines(), tmp_path / "results")
    for target in ((), ("--device", "linux"), ("--device", "this-machine"), ("--device", "provider")):
        found = json.loads(cli("fix", str(run.path), "--json", *target).out)
        assert (found["queues"], found["steps"], found["rates"]) == ([], [], [])
        assert any("This is why." in reason for reason in found["reasons"])
    answer = cli("fix", str(run.path))
    assert "There is nothing to set." in answer.out
    assert "tc qdisc" not in answer.out


def test_an_answer_of_several_places_gets_no_command(fix: Callable[..., dict[str, Any]]) -> None:
    found = fix({"upload": "client_driver"}, more_places=["hop", "last_hop"], **RATES)
    assert found["steps"] == []
    assert "there is no command" in found["reasons"][0]
    line = fix({"upload": "router_uplink"}, more_places=["hop", "last_hop"], **RATES)
    assert line["queues"][0]["place"] == "router_uplink", "a shaper on the router helps wherever behind it the queue is"


def test_a_short_queue_needs_nothing(fix: Callable[..., dict[str, Any]]) -> None:
    found = fix({"upload": "router_uplink"}, added_ms=12.0, grade="A", **RATES)
    assert found["steps"] == []
    assert "nothing to do" in found["reasons"][0]


def test_the_newest_measurement_is_taken(cli: Cli, tmp_path: Path) -> None:
    assert "no such directory" in cli("fix").err
    cures.measured(tmp_path, {"upload": "hop"}, **RATES)
    newest = cures.measured(tmp_path, LINE, later_s=60, **RATES)
    answer = cli("fix", "--json")
    assert Path(json.loads(answer.out)["run"]).resolve() == newest.path.resolve()
    shown = cli("fix").out
    for text in ("On the OpenWrt router", "uci commit sqm", "Why: ", "Undo:", "--device this-machine"):
        assert text in shown
    assert cli("fix", "--quiet").out == ""


def test_wrong_usage_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    run = str(cures.measured(tmp_path, LINE, **RATES).path)
    for arguments, says in (
        ((run, "--device", "fritzbox"), "linux, openwrt"),
        ((run, "--link", "isdn"), "docsis"),
        ((run, "--qdisc", "red"), "cake, fq_codel, bfifo"),
        ((run, "--device", "linux", "--interface", "wan; reboot"), "the name of an interface"),
        ((run, "--undo"), "--undo"),
        ((run, "--persist"), "--persist"),
        ((run, "--apply", "--device", "linux"), "this machine only"),
    ):
        answer = cli("fix", *arguments)
        assert (answer.status, answer.out) == (2, ""), arguments
        assert says in answer.err


@pytest.mark.parametrize(("queue_ms", "within"), [(80.0, 0.0002), (400.0, 0.005)], ids=["seconds", "longer bins"])
def test_the_verdict_names_the_same_rate(
    fix: Callable[..., dict[str, Any]],
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    queue_ms: float,
    within: float,
) -> None:
    # The last sentence of `measure` and `fix` take the rate from the same seconds, with the same margin.
    monkeypatch.setattr(livestreams, "QUEUE_MS", queue_ms)
    observed = livestreams.observations(["idle", "upload"])
    for sample in observed["phases"][1]["goodput"]:
        # One of the seconds carries less, and the next one catches up, as after a lost segment.
        since_s = (sample["t_ns"] - observed["phases"][1]["start_ns"]) / livestreams.SECOND
        sample["bytes"] -= round(60_000 * min(max(since_s - 3, 0), 1) - 60_000 * min(max(since_s - 4, 0), 1))
    verdict = json.loads(_core.judge(json.dumps(observed)))
    named = re.search(r"at (\d+) kbit/s", verdict["sentences"][-1])
    assert named, verdict["sentences"]
    end = {**livestreams.end([]), "observations": observed, "verdict": verdict}
    run = read_events(livestreams.lines([livestreams.start(), end]).splitlines(), tmp_path / "results")
    (rate,) = json.loads(cli("fix", str(run.path), "--device", "linux", "--json").out)["rates"]
    assert int(named[1]) == pytest.approx(rate["link_kbit"], rel=within)


def test_it_is_the_same_from_python(fix: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    found = fix(LINE, "--device", "linux", "--link", "docsis", **RATES)
    advice = bs.fix(tmp_path / "results", device="linux", link="docsis")
    assert [line for step in advice.steps for line in step.lines] == lines(found)
    assert [rate.link_kbit for rate in advice.rates] == [rate["link_kbit"] for rate in found["rates"]]
    with pytest.raises(InputError, match=r"^device: found 'fritzbox'; allowed: linux"):
        bs.fix(tmp_path / "results", device="fritzbox")
    with pytest.raises(InputError, match="margin: found 3; allowed"):
        bs.fix(tmp_path / "results", margin=3)
