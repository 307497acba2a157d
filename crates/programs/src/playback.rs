//! The playback of a video: what the player's buffer holds, and when each segment is played.
//!
//! It follows from the times at which the segments arrive. So the program of a player and the metrics of a stored run use
//! the same code: the records need only those times.
//!
//! Playback starts when the buffer holds `startup`, stalls when the buffer is empty, and continues when it holds
//! `resume`. These are the two levels of Android's ExoPlayer (`DefaultLoadControl`). A segment is in the buffer once its
//! last byte has arrived.

/// The playback of a video whose segments have the same playing time.
#[derive(Clone, Debug)]
pub struct Playback {
    segment_ns: u64,
    resume_ns: u64,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It waits until the buffer, which holds this many segments, holds so much playing time.
    Waiting { segments: u64, goal_ns: u64 },
    /// It plays everything that has arrived, until this time.
    Playing { until_ns: u64 },
}

/// Segments that are played one after the other without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// When the first of them begins.
    pub from_ns: u64,
    /// Their number; may be 0.
    pub segments: u64,
}

impl Playback {
    /// A playback that has not started.
    pub fn new(segment_ns: u64, startup_ns: u64, resume_ns: u64) -> Self {
        Self { segment_ns, resume_ns, state: State::Waiting { segments: 0, goal_ns: startup_ns } }
    }

    /// The next segment has arrived. Returns the segments for which this decides when they are played: this one, or all
    /// that have waited and this one, or none.
    pub fn arrived(&mut self, now_ns: u64) -> Played {
        let (waiting, goal_ns) = match self.state {
            State::Playing { until_ns } if now_ns <= until_ns => {
                self.state = State::Playing { until_ns: until_ns.saturating_add(self.segment_ns) };
                return Played { from_ns: until_ns, segments: 1 };
            }
            // It has stalled since `until_ns`.
            State::Playing { .. } => (0, self.resume_ns),
            State::Waiting { segments, goal_ns } => (segments, goal_ns),
        };
        let segments = waiting + 1;
        let buffered_ns = segments.saturating_mul(self.segment_ns);
        if buffered_ns < goal_ns {
            self.state = State::Waiting { segments, goal_ns };
            return Played { from_ns: now_ns, segments: 0 };
        }
        self.state = State::Playing { until_ns: now_ns.saturating_add(buffered_ns) };
        Played { from_ns: now_ns, segments }
    }

    /// The playing time in the buffer.
    pub fn buffered_ns(&self, now_ns: u64) -> u64 {
        match self.state {
            State::Waiting { segments, .. } => segments.saturating_mul(self.segment_ns),
            State::Playing { until_ns } => until_ns.saturating_sub(now_ns),
        }
    }

    /// When each segment of a video is played, in order, if they arrive at these times. Those at the end that have to
    /// wait for further ones are missing.
    pub fn times(mut self, arrivals_ns: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut times = Vec::new();
        for now_ns in arrivals_ns {
            let Played { from_ns, segments } = self.arrived(now_ns);
            times.extend((0..segments).map(|n| from_ns.saturating_add(n.saturating_mul(self.segment_ns))));
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 4 s; playback starts with 2.5 s and continues with 5 s.
    fn playback() -> Playback {
        Playback::new(4000, 2500, 5000)
    }

    #[test]
    fn playback_starts_with_the_first_segment_that_fills_the_buffer_to_its_level() {
        let mut one = playback();
        assert_eq!(one.buffered_ns(900), 0);
        assert_eq!(one.arrived(1000), Played { from_ns: 1000, segments: 1 });
        assert_eq!([1000, 2500, 5000, 9000].map(|now_ns| one.buffered_ns(now_ns)), [4000, 2500, 0, 0]);

        let mut three = Playback::new(4000, 9000, 5000);
        assert_eq!([1000, 2000].map(|now_ns| three.arrived(now_ns).segments), [0, 0]);
        assert_eq!(three.buffered_ns(2900), 8000, "nothing of it is played");
        assert_eq!(three.arrived(3000), Played { from_ns: 3000, segments: 3 });
        assert_eq!(three.buffered_ns(3000), 12_000);
    }

    #[test]
    fn segments_that_come_in_time_are_played_without_a_pause() {
        // The third arrives when the second, played from 5000 to 9000, ends.
        assert_eq!(playback().times([1000, 1500, 9000]), [1000, 5000, 9000]);
    }

    #[test]
    fn after_a_stall_playback_waits_for_its_second_level() {
        // The first ends at 5000. The second, at 5001, is too late, and holds only 4 of 5 s.
        let mut stalled = playback();
        stalled.arrived(1000);
        assert_eq!(stalled.arrived(5001).segments, 0);
        assert_eq!(stalled.buffered_ns(7000), 4000);
        assert_eq!(stalled.arrived(8000), Played { from_ns: 8000, segments: 2 });
        assert_eq!(stalled.buffered_ns(8000), 8000);
        assert_eq!(playback().times([1000, 5001, 8000, 15_000]), [1000, 8000, 12_000, 16_000]);
    }

    #[test]
    fn segments_that_wait_for_further_ones_are_not_played() {
        assert_eq!(playback().times([1000, 5001]), [1000]);
        assert_eq!(Playback::new(4000, 4001, 4001).times([7]), [0_u64; 0]);
    }
}
