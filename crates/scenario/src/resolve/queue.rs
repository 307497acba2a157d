//! Queueing disciplines, with the defaults that depend on other parameters.

use crate::error::{Problem, Problems};
use crate::file::{CodelQueue, PfifoQueue, Queue, RedQueue};
use crate::model::{Bfifo, Codel, Pfifo, Qdisc, Red};
use crate::path::join;
use crate::red::AveragingError;
use crate::units::SIZE;

/// The discipline in the table at `path`; `None` if its parameters contradict each other.
pub(super) fn resolve(queue: Option<&Queue>, path: &str, problems: &mut Problems) -> Option<Qdisc> {
    match queue {
        None => Some(Qdisc::Pfifo(Pfifo { limit_packets: PfifoQueue::default().limit.get_u32() })),
        Some(Queue::Pfifo(pfifo)) => Some(Qdisc::Pfifo(Pfifo { limit_packets: pfifo.limit.get_u32() })),
        Some(Queue::Bfifo(bfifo)) => Some(Qdisc::Bfifo(Bfifo { limit_bytes: bfifo.limit.get() })),
        Some(Queue::Codel(codel)) => Some(Qdisc::Codel(resolve_codel(codel))),
        Some(Queue::Red(red)) => resolve_red(red, path, problems).map(Qdisc::Red),
    }
}

fn resolve_codel(codel: &CodelQueue) -> Codel {
    Codel {
        limit_packets: codel.limit.get_u32(),
        target_ns: codel.target.get(),
        interval_ns: codel.interval.get(),
        ecn: codel.ecn,
        ce_threshold_ns: codel.ce_threshold.map(|threshold| threshold.get()),
    }
}

/// Derives omitted parameters as iproute2's tc does, and refuses what tc or the kernel refuses.
///
/// Stricter than tc in one thing: max must be below limit, as tc-red(8) asks, or the tail drop hides RED.
fn resolve_red(queue: &RedQueue, path: &str, problems: &mut Problems) -> Option<Red> {
    let limit_bytes = queue.limit.get();
    let given_min = queue.min.map(|min| min.get());
    let max_bytes = match (queue.max, given_min) {
        (Some(max), _) => max.get(),
        (None, Some(min)) => 3 * min,
        (None, None) => limit_bytes / 4,
    };
    let min_bytes = given_min.unwrap_or(max_bytes / 3);
    let avpkt_bytes = queue.avpkt.get_u32();
    let burst_packets = match queue.burst {
        Some(burst) => burst,
        // At most 2 * 10 GB / 3: fits after the division for any avpkt that passes the checks below.
        None => u32::try_from((2 * min_bytes + max_bytes) / (3 * u64::from(avpkt_bytes))).unwrap_or(u32::MAX),
    };
    let red = Red {
        limit_bytes,
        min_bytes,
        max_bytes,
        avpkt_bytes,
        burst_packets,
        probability: queue.probability,
        bandwidth_bps: queue.bandwidth.get(),
        ecn: queue.ecn,
    };
    match contradiction(&red, queue, path) {
        None => Some(red),
        Some(problem) => {
            problems.add(|| problem);
            None
        }
    }
}

fn contradiction(red: &Red, queue: &RedQueue, path: &str) -> Option<Problem> {
    let (limit, min, max) = (SIZE.display(red.limit_bytes), SIZE.display(red.min_bytes), SIZE.display(red.max_bytes));
    let derived = |is_given: bool| if is_given { "" } else { " (derived)" };
    if red.max_bytes >= red.limit_bytes {
        let found = format!("{max}{}", derived(queue.max.is_some()));
        return Some(Problem::new(join(path, "max"), found, format!("less than limit = {limit}")));
    }
    if red.min_bytes == 0 || red.min_bytes >= red.max_bytes {
        let found = format!("{min}{}", derived(queue.min.is_some()));
        return Some(Problem::new(join(path, "min"), found, format!("more than 0b and less than max = {max}")));
    }
    if let Err(error) = red.averaging_shift() {
        let found = format!("{}{}", red.burst_packets, derived(queue.burst.is_some()));
        return Some(burst_refused(found, error, path));
    }
    if red.probability_shift().is_none() {
        let allowed = "a probability that is not vanishingly small beside max - min";
        return Some(Problem::new(join(path, "probability"), red.probability.to_string(), allowed));
    }
    None
}

fn burst_refused(found: String, error: AveragingError, path: &str) -> Problem {
    let path = join(path, "burst");
    match error {
        AveragingError::BurstTooSmall { least_packets } => {
            let allowed = format!("at least 1 + min / avpkt = {least_packets} packets, with a min above avpkt");
            Problem::new(path, found, allowed)
        }
        AveragingError::TooSlow { shift } => {
            let found = format!("{found}, for which each packet moves the average by 2^-{shift}");
            let allowed =
                "faster averages where max is large (the bits of max and the exponent below 32, as in the kernel)";
            Problem::new(path, found, allowed).hint("give a larger min or a smaller burst")
        }
    }
}
