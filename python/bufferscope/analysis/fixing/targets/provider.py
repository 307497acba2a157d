"""A report for the provider, for queues that no setting of one's own reaches."""

from bufferscope.analysis import live as words
from bufferscope.analysis.fixing.advice import Case, Step
from bufferscope.store.live import LiveMeasurement


def report(case: Case) -> Step:
    """A report to send."""
    live: LiveMeasurement = case.run.meta["summary"]["live"]
    verdict = live["verdict"]
    lines = [
        f"Test of {case.run.meta['started'][:16].replace('T', ' ')} UTC to {live['host']} ({live['address']}), with "
        "bufferscope "
        f"{live['client'].get('version', '')}.".replace(" .", "."),
        f"Idle path: round trip {words.ms(verdict['idle']['rtt']['p50_ns'])} ms (median).",
    ]
    for queue in case.queues:
        numbers = words.in_direction(queue.phase, queue.direction)
        goodput = numbers["goodput"] if numbers else None
        rate = f", at {words.mbit(goodput['mean_bps'])} Mbit/s of goodput" if goodput else ""
        added = words.percentile(numbers["added"], "p95_ns") if numbers else words.UNKNOWN
        lines.append(
            f"During {words.PHASES[queue.phase['kind']]}{rate}, packets of the "
            f"{'upload' if queue.direction == 'up' else 'download'} "
            f"are delayed by {added} ms (95th percentile) at {queue.answer}."
        )
        for hop in queue.phase["hops"]:
            if hop["used"] and hop["rise_ns"] is not None:
                lines.append(
                    f"  Hop {hop['ttl']} from {words.ENDS[hop['end']]} ({hop['address'] or 'no address'}): "
                    f"{words.ms(hop['idle_p50_ns'])} ms idle, {words.ms(hop['rise_ns'])} ms more under load."
                )
    lines.append("Please shorten this queue, or turn on active queue management (RFC 7567, RFC 8290, RFC 9332) there.")
    return Step(
        "To the provider: send this, with the page of the test",
        "The queue is beyond what settings of your own reach.",
        tuple(lines),
        are_commands=False,
        notes=("The text has the addresses of hops, which show where the connection is.",),
    )
