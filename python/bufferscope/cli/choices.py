"""A choice of a queue for people and for programs."""

from rich.text import Text

from bufferscope.cli.documents import estimate_values
from bufferscope.cli.terminal import console, plain_table
from bufferscope.studies.choice import Choice, fmt


def print_choice(choice: Choice) -> None:
    """The table of all queues, the verdict in words, and the command."""
    table = plain_table(fmt.title(choice))
    table.add_column("Queue", overflow="fold")
    for heading in fmt.headings(choice):
        table.add_column(heading, justify="right")
    table.add_column("")
    for each, row in zip(choice.measured, fmt.rows(choice), strict=True):
        table.add_row(*map(Text, row), style="bold" if each is choice.best else None)
    console().print(table)
    for sentence in fmt.answer(choice):
        console().print(Text(sentence))
    if choice.command:
        console().print(Text(f"  {choice.command}"))
    for sentence in (*fmt.device(choice), *fmt.details(choice)):
        console().print(Text(sentence))


def document(choice: Choice) -> dict[str, object]:
    """A choice as JSON; a censored or unknown value is null."""
    verdict, bottleneck = choice.verdict, choice.bottleneck
    return {
        "experiment": choice.result.experiment,
        "port": bottleneck.port.name,
        "link": bottleneck.port.link,
        "direction": bottleneck.side,
        "rate_bps": bottleneck.rate_bps,
        "round_trip_ms": bottleneck.round_trip_ns / 1e6,
        "path_holds_bytes": round(bottleneck.held_bytes),
        "criteria": [criterion.name for criterion in verdict.criteria],
        "best": choice.best.name,
        "as_good": [each.name for each in verdict.as_good],
        "smallest_tail_drop": verdict.smallest and verdict.smallest.name,
        "own": choice.own and choice.own.name,
        "command": choice.command,
        "queues": [
            {
                "name": each.name,
                "queue": dict(each.candidate.queue),
                "tc": each.tc or None,
                "goodput_mbit": estimate_values(each.goodput_mbit),
                "rtt_p50_ms": estimate_values(each.rtt_p50_ms),
                "rtt_p95_ms": estimate_values(each.rtt_p95_ms),
                "call_mos": each.call_mos and estimate_values(each.call_mos),
                "elsewhere_mbit": each.elsewhere_mbit and estimate_values(each.elsewhere_mbit),
            }
            for each in choice.measured
        ],
        "notes": list(choice.notes),
        "elsewhere": list(bottleneck.others),
        "runs": [str(run.path) for run in choice.result.runs],
    }
