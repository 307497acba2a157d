"""The only parts of a run that metrics and figures may use: its tables, its scenario and what else is listed here.

This is an interface (a `Protocol`), not a class to inherit from, because the metrics read records of any origin.
Column names and units are those of the records' schema: integer nanoseconds (`*_ns`), bytes, packets, bits per second.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from bufferscope.base.libraries import polars as pl
from bufferscope.model.scenario import Scenario

if TYPE_CHECKING:
    from bufferscope.store.metadata import Metadata
    from bufferscope.store.partition import RunFacts


class RunRecords(Protocol):
    """The records of one run: one scenario (`scenario`), one seed, and the tables."""

    @property
    def id(self) -> str:
        """A name that distinguishes this run from others."""

    @property
    def engine(self) -> str:
        """The name of what carried or observed the packets."""

    @property
    def seed(self) -> int:
        """The seed that the engine drew its random numbers from."""

    @property
    def point(self) -> Mapping[str, str]:
        """The swept values of this run's point, path to label; empty without a sweep."""

    @property
    def scenario(self) -> Scenario:
        """The resolved scenario: every default filled in, every value a plain number in the unit of its name."""

    @property
    def facts(self) -> RunFacts:
        """What is asked of a run most often; in memory, even if `meta` has to be read again."""

    @property
    def meta(self) -> Metadata:
        """The content of `run.json`: how the run was made."""

    @property
    def probes(self) -> pl.DataFrame:
        """One row per probe sent: `probe, seq, sent_ns, rtt_ns` (null: lost)`, owd_up_ns, owd_down_ns`."""

    @property
    def flows(self) -> pl.DataFrame:
        """One row per sample of a connection: `t_ns, flow, cwnd_bytes, ssthresh_bytes, ..., delivered_bytes, ...`."""

    @property
    def queues(self) -> pl.DataFrame:
        """One row per sample of a layer of a port: `t_ns, port, layer, packets, bytes, dropped, marked, sent_...`."""

    @property
    def flow_queues(self) -> pl.DataFrame:
        """One row per sample of a flow queue with packets: `t_ns, port, queue, flow` (null: unknown)`, ...`."""

    @property
    def drops(self) -> pl.DataFrame:
        """One row per packet dropped or marked: `t_ns, port, layer, flow, bytes, reason`."""

    @property
    def transfers(self) -> pl.DataFrame:
        """One row per object: `traffic, flow, started_ns, finished_ns` (null: unfinished)`, bytes`."""

    @property
    def sojourns(self) -> pl.DataFrame:
        """Histogram rows `t_ns, port, layer, sojourn_ns, packets`: `packets` packets stayed about `sojourn_ns`."""

    @property
    def estimates(self) -> pl.DataFrame:
        """One row per direction of a test of the path's buffers: `traffic, direction, idle_ns, loaded_ns, ...`."""

    @property
    def round_trips(self) -> pl.DataFrame:
        """One row per round-trip time that a capture shows: `t_ns, flow, half, method, rtt_ns`."""

    @property
    def retransmissions(self) -> pl.DataFrame:
        """One row per segment that a capture shows to have been sent again: `t_ns, flow, bytes, kind, spurious`."""

    @property
    def one_way(self) -> pl.DataFrame:
        """One row per packet captured at both ends: `t_ns, flow, way, change_ns`."""

    @property
    def hops(self) -> pl.DataFrame:
        """One row per probe with a limited TTL: `t_ns, ladder, ttl, address, rtt_ns, kind, mpls` (null: no answer)."""

    @property
    def stages(self) -> pl.DataFrame:
        """One row per stay of a packet in one of its sender's own queues: `t_ns, end, stage, delay_ns`."""

    @property
    def capacity(self) -> pl.DataFrame:
        """One row per rate of a port's link: `t_ns, port, rate_bps`; the first at 0, and one at each change."""


def was_changed(run: RunRecords) -> bool:
    """Whether the run was changed on its way, so that its scenario does not hold for all of it."""
    return any(change["t_ns"] > 0 for change in run.meta["summary"].get("changes", ()))
