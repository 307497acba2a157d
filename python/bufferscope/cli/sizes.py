"""The size of a buffer for people and for programs."""

import math
from pathlib import Path

from rich.text import Text

from bufferscope.base.fmt import quantity
from bufferscope.cli.documents import estimate_values
from bufferscope.cli.terminal import console, plain_table
from bufferscope.studies.sizing import EquationResult, MeasuredQueue, SimulatedSizing, Sizing, fmt


def print_sizing(sized: Sizing, out: Path) -> None:
    """The equations, what the simulations found, and the commands."""
    _say(fmt.about(sized.line))
    _say("")
    for answer in sized.answers:
        _say(f"{answer.name}: {_value(answer)}")
        _say(f"    {answer.formula} = {answer.working}   [{answer.source}]")
        if answer.note:
            _say(f"    {answer.note}")
    if sized.found:
        _print_found(sized, sized.found)
        _say(f"{sized.found.runs} runs, stored in {out}/size/")
    _say("")
    for setting, command in sized.settings:
        _say(f"  {command}")
        _say(f"      {setting.reason}")
    _say(f"({fmt.WHERE})")
    for note in fmt.notes(sized):
        _say(note)


def _print_found(sized: Sizing, found: SimulatedSizing) -> None:
    table = plain_table("Checked by simulation")
    table.add_column("Queue")
    for heading in fmt.HEADINGS:
        table.add_column(heading, justify="right")
    table.add_column("")
    for each in (*found.sizes, *found.managed):
        table.add_row(*map(Text, fmt.row(found, each)), style="bold" if each is found.smallest else None)
    console().print(table)
    for sentence in fmt.answer(sized, found):
        _say(sentence)


def _value(answer: EquationResult) -> str:
    if answer.unit == "s":
        return quantity(answer.value * 1e9, "ns")
    packets = f" ({answer.packets} full packets)" if answer.packets else ""
    return f"{quantity(round(answer.value), 'bytes')}{packets}"


def _say(text: str) -> None:
    console().print(Text(text))


def document(sized: Sizing) -> dict[str, object]:
    """A sizing as JSON; a censored value is null."""
    line, found = sized.line, sized.found
    return {
        "rate_bps": line.rate_bps,
        "rtt_ms": line.rtt_ns / 1e6,
        "flows": line.flows,
        "congestion": line.congestion,
        "target": line.target,
        "packet_bytes": line.packet_bytes,
        "buffer_bytes": line.buffer_bytes,
        "answers": [
            {
                "name": each.name,
                "value": each.value if math.isfinite(each.value) else None,
                "unit": each.unit,
                "packets": each.packets,
                "formula": each.formula,
                "working": each.working,
                "source": each.source,
                "note": each.note or None,
            }
            for each in sized.answers
        ],
        "smallest": found and _measured(found, found.smallest),
        "below": found and found.below and _measured(found, found.below),
        "sizes": [_measured(found, each) for each in found.sizes] if found else [],
        "managed": [_measured(found, each) for each in found.managed] if found else [],
        "settings": [
            {"name": each.name, "queue": each.queue, "command": command, "reason": each.reason}
            for each, command in sized.settings
        ],
        "notes": list(sized.notes),
    }


def _measured(found: SimulatedSizing, each: MeasuredQueue) -> dict[str, object]:
    return {
        "name": each.name,
        "limit_packets": each.limit_packets,
        "goodput_mbit": estimate_values(each.goodput_mbit),
        "share": found.share(each),
        "rtt_p95_ms": estimate_values(each.rtt_p95_ms),
        "queue_p95_ms": estimate_values(each.sojourn_p95_ms),
    }
