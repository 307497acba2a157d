"""The statistics of delivery traces for the presets of links.

    python scripts/presets.py traces/TMobile-UMTS-driving.down ...

The files are those of mahimahi (https://github.com/ravinet/mahimahi, directory `traces`, at ae477d4). They were
recorded for "Stochastic Forecasts Achieve High Throughput and Low Delay over Cellular Networks" (Winstein, Sivaraman,
Balakrishnan, NSDI 2013). Silences of a second or longer are outages. The rates are those of whole seconds that no
outage touches.
"""

import sys
from pathlib import Path

import numpy as np

KBIT = 1500 * 8 / 1000
OUTAGE_MS = 1000
LONGEST_LAG_S = 60


def main(paths: list[str]) -> None:
    """Print one line for each file."""
    for path in paths:
        times = np.array(Path(path).read_text().split(), dtype=np.int64)
        before, after = times[:-1], times[1:]
        is_outage = after - before >= OUTAGE_MS
        seconds = np.bincount(times // 1000)[:-1] * KBIT
        usable = np.ones(len(seconds), dtype=bool)
        for start, end in zip(before[is_outage], after[is_outage], strict=True):
            usable[start // 1000 : end // 1000 + 1] = False
        rates = seconds[usable]
        silences = (after - before)[is_outage] / 1000
        line = f"{Path(path).name}: mean {rates.mean():.0f}, deviation {rates.std(ddof=1):.0f}, "
        line += f"max {seconds.max():.0f} kbit/s"
        line += f", coherence {coherence_s(seconds, usable):.1f} s"
        if len(silences) > 1:
            every = (times[-1] / 1000 - silences.sum()) / len(silences)
            line += f", {len(silences)} outages of {silences.mean():.2f} s every {every:.2f} s"
        print(line)


def coherence_s(seconds: np.ndarray, usable: np.ndarray) -> float:
    """The time after which the autocorrelation of the logarithm is 1/e, if the rates have a log-normal distribution.

    Of two log-normal numbers with the correlation c and the squared coefficient of variation v, the logarithms have the
    correlation log(1 + c v) / log(1 + v).
    """
    mean, variance = seconds[usable].mean(), seconds[usable].var(ddof=1)
    squared = variance / mean**2
    last = 1.0
    for lag in range(1, LONGEST_LAG_S + 1):
        both = usable[:-lag] & usable[lag:]
        correlation = ((seconds[:-lag] - mean) * (seconds[lag:] - mean))[both].mean() / variance
        found = float(np.log1p(max(correlation, -0.9) * squared) / np.log1p(squared))
        if found < np.exp(-1):
            return lag - 1 + (last - float(np.exp(-1))) / (last - found)
        last = found
    return float("nan")


if __name__ == "__main__":
    main(sys.argv[1:])
