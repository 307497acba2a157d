"""Settings of cake-autorate for lines whose rate varies.

It needs three rates for each direction (config.primary.sh of github.com/lynxthecat/cake-autorate): a minimum that the
line always carries, a base near it, and a maximum.
"""

from bufferscope.analysis.fixing.advice import Case, Step
from bufferscope.store.verdict import Direction

WORDS: dict[Direction, str] = {"down": "dl", "up": "ul"}


def autorate(case: Case, upload: str, download: str) -> Step:
    """The lines of its configuration; the devices are those whose cake it changes."""
    rates = {rate.direction: rate for rate in case.rates}
    lines = [f"dl_if={download}", f"ul_if={upload}"]
    for direction, word in WORDS.items():
        rate = rates.get(direction)
        lines.append(f"adjust_{word}_shaper_rate={int(rate is not None and rate.varies)}")
        if rate:
            lines += [
                f"min_{word}_shaper_rate_kbps={min(rate.lowest_kbit, rate.usual_kbit)}",
                f"base_{word}_shaper_rate_kbps={rate.usual_kbit}",
                f"max_{word}_shaper_rate_kbps={max(rate.highest_kbit, rate.usual_kbit)}",
            ]
    varying = " and ".join(
        f"{'download' if rate.direction == 'down' else 'upload'} by {100 * (rate.variation or 0):.0f} %"
        for rate in case.rates
        if rate.varies
    )
    return Step(
        "In config.primary.sh of cake-autorate (github.com/lynxthecat/cake-autorate) on the router",
        f"The rate varies from second to second: {varying}. So no fixed rate is right, and cake-autorate changes "
        "that of "
        "cake while it runs: the minimum is the slowest second of this test less a margin, the maximum the fastest "
        "one.",
        tuple(lines),
        are_commands=False,
        notes=("One test sees only the speeds of one moment: repeat it in the evening, and take the extremes.",),
    )
