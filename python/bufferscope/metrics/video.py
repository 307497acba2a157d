"""How well the videos of `video` traffic played: the start, the stalls, the bit rate and its changes.

The records have the times at which segments arrived. The playback follows from them by the code with which the player
itself computes its buffer (`crates/programs/src/playback.rs`), so both are the same.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from bufferscope import _core
from bufferscope.base.libraries import numpy as np
from bufferscope.base.libraries import polars as pl
from bufferscope.metrics.batch import run_type
from bufferscope.metrics.declaring import Metric, query
from bufferscope.metrics.window import window
from bufferscope.model.network import NANOSECONDS, traffic_named

if TYPE_CHECKING:
    import numpy.typing as npt

    from bufferscope.metrics.batch import Batch
    from bufferscope.metrics.records import RunRecords

SOURCE = "transfers: finished_ns; scenario: segment_ns, startup_ns, resume_ns"
WITH_RATE = "transfers: finished_ns, bytes; scenario: segment_ns, startup_ns, resume_ns"
MBIT_NS = 8000
"""A byte per nanosecond in Mbit/s."""


@query(
    Metric(
        "video.<traffic>.startup_s",
        "s",
        "Time from opening the connection until playback starts, also if that is before the window; +inf if it never "
        "does.",
        SOURCE,
        lambda: (pl.col("startup_ns"), NANOSECONDS),
        heading="<traffic> startup (s)",
    ),
    Metric(
        "video.<traffic>.rate_mbit",
        "Mbit/s",
        "Mean bit rate of what was played.",
        WITH_RATE,
        lambda: (
            pl.when(pl.col("shown_ns") > 0).then(pl.col("byte_ns") * MBIT_NS),
            pl.col("segment_ns") * pl.col("shown_ns"),
        ),
        heading="<traffic> (Mbit/s played)",
    ),
    Metric(
        "video.<traffic>.switches",
        "changes",
        "Changes of the bit rate from one played segment to the next.",
        WITH_RATE,
        lambda: pl.col("switches"),
        heading="<traffic> switches",
    ),
    Metric(
        "video.<traffic>.stalls",
        "stalls",
        "How often playback stalled because the buffer was empty.",
        SOURCE,
        lambda: pl.col("stalls"),
        heading="<traffic> stalls",
    ),
    Metric(
        "video.<traffic>.stalled_s",
        "s",
        "Time in which playback stalled.",
        SOURCE,
        lambda: (pl.col("stalled_ns"), NANOSECONDS),
    ),
    Metric(
        "video.<traffic>.stalled_percent",
        "%",
        "The same as a share of the time from the start of playback to the end of the entry.",
        SOURCE,
        lambda: (pl.col("stalled_ns") * 100, pl.col("lasted_ns")),
        heading="<traffic> stalled (%)",
    ),
    reads={"transfers": ("traffic", "started_ns", "finished_ns", "bytes")},
)
def of_videos(batch: Batch) -> pl.LazyFrame:
    """Every video of which a segment was requested."""
    keys = ["run", "traffic"]
    about = ("segment_ns", "startup_ns", "resume_ns", "start_ns", "end_ns")
    videos = batch.frame({"traffic": pl.String, **dict.fromkeys(about, pl.Int64)}, _videos)
    segments = batch.table("transfers", "traffic", "started_ns", "finished_ns", "bytes").drop_nulls("started_ns")
    ordered = segments.join(videos, on=keys).sort("started_ns", maintain_order=True)
    found = ordered.group_by(keys).map_groups(_of_video, _columns())
    return videos.select(*keys, "segment_ns").join(found, on=keys, maintain_order="left")


def _videos(run: RunRecords) -> list[tuple[object, ...]]:
    """Each video with what determines its playback, and the part of the window in which it is watched."""
    measured = window(run.scenario)
    return [
        (
            entry["name"],
            entry["segment_ns"],
            entry["startup_ns"],
            entry["resume_ns"],
            measured.start_ns,
            min(measured.end_ns, entry["stop_ns"]),
        )
        for entry in traffic_named(run.scenario, "video")
    ]


def _columns() -> dict[str, type[pl.DataType]]:
    """The columns of a video's numbers, with their types."""
    numbers = ("startup_ns", "byte_ns", "shown_ns", "switches", "stalls", "stalled_ns", "lasted_ns")
    return {"run": run_type(), "traffic": pl.String, **dict.fromkeys(numbers, pl.Float64)}


def _of_video(segments: pl.DataFrame) -> pl.DataFrame:
    """The numbers of one video, from its segments in order; those of the playback are null if there was none."""
    about = segments.row(0, named=True)
    arrived = segments.drop_nulls("finished_ns")
    played = _core.playback(
        arrived["finished_ns"].clip(lower_bound=0).to_list(),
        about["segment_ns"],
        about["startup_ns"],
        about["resume_ns"],
    )
    times = np.array([t_ns for t_ns in played if t_ns < about["end_ns"]], np.int64)
    found: dict[str, object] = {"run": about["run"], "traffic": about["traffic"], "startup_ns": inf}
    if len(times):
        found["startup_ns"] = float(times[0] - about["started_ns"])
        sizes = arrived["bytes"].head(len(times)).fill_null(0).to_numpy()
        found |= _playback(times, sizes, about["segment_ns"], about["start_ns"], about["end_ns"])
    return pl.DataFrame([found], schema=_columns())


def _playback(
    times: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64], segment_ns: int, start_ns: int, end_ns: int
) -> dict[str, float]:
    """The numbers of a playback within a time, from the times at which its segments are played, and their sizes."""
    if end_ns <= start_ns:
        return {}
    ends = times + segment_ns
    # The buffer is empty from the end of a segment to the start of the next one, or to the end of all.
    empty_ns = np.maximum(np.append(times[1:], end_ns) - np.maximum(ends, start_ns), 0)
    shown_ns = np.maximum(np.minimum(ends, end_ns) - np.maximum(times, start_ns), 0)
    return {
        "byte_ns": float(sizes.astype(np.float64) @ shown_ns.astype(np.float64)),
        "shown_ns": float(shown_ns.sum()),
        "switches": float(np.sum((sizes[1:] != sizes[:-1]) & (times[1:] >= start_ns))),
        "stalls": float(np.count_nonzero(empty_ns)),
        "stalled_ns": float(empty_ns.sum()),
        "lasted_ns": float(end_ns - max(int(times[0]), start_ns)),
    }
