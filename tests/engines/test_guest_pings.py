"""When the pings of a kernel leave."""

from pathlib import Path

import pytest
from dumbbell import dumbbell, pfifo
from guests import run_on_both

INTERVAL_NS = 50_000_000
SLACK_NS = 50_000
BUSY_NS = 150_000
"""What an idle kernel needs until the request has left: to wake the program, and to send."""


@pytest.mark.guest
def test_pings_are_as_late_as_the_slack_of_timers_on_both_engines(tmp_path: Path) -> None:
    """Two pings of one host are one flow to `fq`, and which of them waits depends on how far apart they leave."""
    ping = {"interval": "50ms"}
    text = dumbbell("Pings", "10s", bottleneck={"queue": pfifo(100)}, bulk=None, ping=ping)
    [sim], [guest] = run_on_both(text, tmp_path)
    for run, most_ns in ((sim, SLACK_NS), (guest, SLACK_NS + BUSY_NS)):
        late = [sent_ns % INTERVAL_NS for sent_ns in run.probes["sent_ns"].to_list()]
        assert len(late) == 200
        assert max(late) <= most_ns
        assert len(set(late)) > 100, "they are not all equally late"
