//! The load of one phase: connections that each have one request with a long answer, or a long request; or one of ndt7.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bufferscope_endpoint::socket::tcp_info;
use bufferscope_verdict::input::Direction;
use hyper::Uri;
use tokio::task::JoinSet;

use super::ndt7::Test;
use crate::client::http::{Connection, HttpError, Multiplexed, Origin, Purpose, Steps, Tuning, next};
use crate::load::{Log, Sampler, Shared};
use crate::records::FlowRow;
use crate::time::realtime_ns;
use crate::wire::load::SendBuffer;

/// A server whose large object, or whose patience for an upload, is shorter than this does not carry a load.
const LEAST_BYTES: u64 = 1 << 20;
/// Connections do not send the same bytes at the same time.
const STRIDE: usize = 37_000;

/// What the connections of a load need to know.
#[derive(Clone)]
pub(super) struct Plan {
    pub(super) origin: Origin,
    pub(super) direction: Direction,
    /// The large object, or where uploads go.
    pub(super) url: Uri,
    /// Whether that is a WebSocket of ndt7.
    pub(super) is_ndt7: bool,
    /// The congestion control of uploads.
    pub(super) congestion: String,
}

/// A load that runs.
pub(super) struct Load {
    plan: Plan,
    shared: Arc<Shared>,
    /// What a server of ndt7 says of its downloads.
    reported: Arc<Mutex<Vec<FlowRow>>>,
    connections: Connections,
    tasks: JoinSet<Result<(), HttpError>>,
    /// Connections that were asked for.
    pub(super) flows: u16,
    /// Bytes acknowledged on connections that have ended.
    ended_bytes: u64,
    failure: Option<String>,
}

/// The connections that are open.
#[derive(Clone, Default)]
pub(super) struct Connections(Arc<Mutex<Vec<Open>>>);

struct Open {
    number: u16,
    socket: OwnedFd,
    requests: Option<Multiplexed>,
    tuning: Arc<Tuning>,
    sampler: Option<Sampler>,
    acknowledged: u64,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Vec<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One of them that carries several requests at a time, chosen by a number.
    pub(super) fn any(&self, number: usize) -> Option<Multiplexed> {
        let open = self.lock();
        let usable: Vec<_> =
            open.iter().filter_map(|one| one.requests.as_ref()).filter(|one| !one.is_closed()).collect();
        usable.get(number.checked_rem(usable.len())?).map(|one| (*one).clone())
    }

    /// Whether no connection carries several requests at a time, although there are some.
    pub(super) fn only_http1(&self) -> bool {
        let open = self.lock();
        !open.is_empty() && open.iter().all(|one| one.requests.is_none())
    }
}

impl Load {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            shared: Arc::default(),
            reported: Arc::default(),
            connections: Connections::default(),
            tasks: JoinSet::new(),
            flows: 0,
            ended_bytes: 0,
            failure: None,
        }
    }

    pub(super) fn direction(&self) -> Direction {
        self.plan.direction
    }

    pub(super) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Opens more connections.
    pub(super) fn add(&mut self, more: u16) {
        for number in self.flows..self.flows + more {
            let (plan, shared, connections) = (self.plan.clone(), Arc::clone(&self.shared), self.connections.clone());
            let reported = Arc::clone(&self.reported);
            self.tasks.spawn(async move {
                match plan.is_ndt7 {
                    true => ndt7(&plan, &shared, &connections, &reported).await,
                    false => run(&plan, number, &shared, &connections).await,
                }
            });
        }
        self.flows += more;
    }

    /// Samples the connections. Those of a download are described by their round-trip times alone, because their sender is the server.
    pub(super) fn sample(&mut self, of_downloads: &mut Vec<FlowRow>) {
        of_downloads.append(&mut self.reported.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut open, t_ns) = (self.connections.lock(), realtime_ns());
        for one in open.iter_mut() {
            if let Some(sampler) = &mut one.sampler
                && let Ok(Some(bytes)) = sampler.sample(&one.socket, &self.shared)
            {
                one.tuning.set(bytes);
            }
            let Ok(info) = tcp_info(&one.socket) else { continue };
            match self.plan.direction {
                Direction::Up => one.acknowledged = info.bytes_acked,
                // The server says more.
                Direction::Down if self.plan.is_ndt7 => {}
                Direction::Down => of_downloads.push(FlowRow {
                    t_ns,
                    flow: one.number,
                    srtt_ns: u64::from(info.rtt_us) * 1000,
                    min_rtt_ns: info.min_rtt_us.map(|us| u64::from(us) * 1000),
                    ..FlowRow::default()
                }),
            }
        }
    }

    /// Payload in bytes: what a download has received, or what the server has acknowledged of an upload.
    pub(super) fn bytes(&self) -> u64 {
        match self.plan.direction {
            Direction::Down => self.shared.received.load(std::sync::atomic::Ordering::Relaxed),
            Direction::Up => {
                let open = self.connections.lock();
                open.iter().fold(self.ended_bytes, |sum, one| sum + one.acknowledged)
            }
        }
    }

    /// Why the load has failed, if it has: the server refuses it, or no connection is left.
    pub(super) fn failure(&mut self) -> Option<&str> {
        while let Some(ended) = self.tasks.try_join_next() {
            let why = match ended {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => {
                    let refused = matches!(error, HttpError::Status(_));
                    let text = error.to_string();
                    if refused {
                        self.failure.get_or_insert_with(|| text.clone());
                    }
                    text
                }
                Err(error) => error.to_string(),
            };
            self.shared.fail(format!("a load connection: {why}"));
            if self.tasks.is_empty() {
                self.failure.get_or_insert(why);
            }
        }
        self.failure.as_deref()
    }

    /// Whether every connection has ended as it should.
    pub(super) fn is_done(&self) -> bool {
        self.flows > 0 && self.tasks.is_empty() && self.failure.is_none()
    }

    /// Ends the load. Returns what was recorded.
    pub(super) fn end(mut self) -> Log {
        self.shared.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        self.tasks.abort_all();
        self.connections.lock().clear();
        self.shared.take_log()
    }
}

/// A test of ndt7.
async fn ndt7(
    plan: &Plan,
    shared: &Arc<Shared>,
    connections: &Connections,
    reported: &Mutex<Vec<FlowRow>>,
) -> Result<(), HttpError> {
    let (test, socket) = Test::open(&plan.origin, &plan.url, plan.direction, &plan.congestion, shared).await?;
    let sampler = match plan.direction {
        Direction::Down => None,
        Direction::Up => Some(Sampler::new(&socket, 0, SendBuffer::Short, shared).map_err(HttpError::Here)?),
    };
    let tuning = Arc::default();
    connections.lock().push(Open { number: 0, socket, requests: None, tuning, sampler, acknowledged: 0 });
    let row = |row| reported.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    match plan.direction {
        Direction::Down => test.download(row).await,
        Direction::Up => test.upload(shared).await,
    }
}

/// A connection until it fails or the load ends.
async fn run(plan: &Plan, number: u16, shared: &Arc<Shared>, connections: &Connections) -> Result<(), HttpError> {
    let purpose = match plan.direction {
        Direction::Down => Purpose::Download,
        Direction::Up => Purpose::Upload(&plan.congestion),
    };
    let mut connection = Connection::open(&plan.origin, &purpose, &mut Steps::default()).await?;
    let socket = connection.socket.try_clone().map_err(HttpError::Here)?;
    let sampler = match plan.direction {
        Direction::Down => None,
        Direction::Up => Some(Sampler::new(&socket, number, SendBuffer::Short, shared).map_err(HttpError::Here)?),
    };
    let (requests, tuning) = (connection.multiplexed(), Arc::clone(&connection.tuning));
    connections.lock().push(Open { number, socket, requests, tuning, sampler, acknowledged: 0 });
    while !shared.stops() {
        let bytes = match plan.direction {
            Direction::Down => download(&mut connection, &plan.url, shared).await?,
            Direction::Up => upload(&mut connection, &plan.url, shared, usize::from(number) * STRIDE).await?,
        };
        if bytes < LEAST_BYTES && !shared.stops() {
            let what = match plan.direction {
                Direction::Down => "its large object has only",
                Direction::Up => "it ended an upload after",
            };
            return Err(HttpError::Status(format!("the server carries no load: {what} {bytes} bytes")));
        }
    }
    Ok(())
}

async fn download(connection: &mut Connection, url: &Uri, shared: &Arc<Shared>) -> Result<u64, HttpError> {
    let mut body = connection.get(url).await?.into_body();
    let mut bytes = 0;
    while let Some(piece) = next(&mut body).await? {
        bytes += piece.len() as u64;
        shared.has_received(piece.len() as u64);
        if shared.stops() {
            break;
        }
    }
    Ok(bytes)
}

async fn upload(connection: &mut Connection, url: &Uri, shared: &Arc<Shared>, offset: usize) -> Result<u64, HttpError> {
    let before = tcp_info(&connection.socket).map_or(0, |info| info.bytes_acked);
    let mut body = connection.post(url, shared, offset).await?.into_body();
    while next(&mut body).await?.is_some() {}
    Ok(tcp_info(&connection.socket).map_or(0, |info| info.bytes_acked).saturating_sub(before))
}
