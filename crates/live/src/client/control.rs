//! The client's end of the control connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::Error;
use tokio_rustls::rustls::pki_types::ServerName;

pub use super::secure::pinned;
use crate::server::certificate::OWN_NAME;
use crate::wire::control::{Answer, ControlError, LONGEST_ANSWER, PROTOCOL, Request, Welcome, receive, send};
use crate::wire::token::Token;

/// A server must accept a connection, and speak, within this time.
const PATIENCE: Duration = Duration::from_secs(8);
/// A server that lets a client wait says so every two seconds.
const QUEUE_PATIENCE: Duration = Duration::from_secs(15);

/// Why there is no test.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no reply.
    #[error("{0}: no answer within {secs} s: is `bufferscope serve` running there, and does a firewall let TCP port {port} through?", port = .0.port(), secs = PATIENCE.as_secs())]
    Silent(SocketAddr),
    /// The connection failed.
    #[error("{0}: {1}: is `bufferscope serve` running there?")]
    Refused(SocketAddr, io::Error),
    /// It is not the server that printed the token.
    #[error(
        "{0}: its certificate is not the one that the token names: it is another server, or it was started anew without its token file"
    )]
    AnotherServer(SocketAddr),
    /// Something else answers.
    #[error("{0}: it does not answer as `bufferscope serve` does: {1}")]
    NotOurs(SocketAddr, String),
    /// Something on this machine failed.
    #[error("{0}")]
    Here(io::Error),
    /// The server gives a reason.
    #[error("the server refuses the test: {0}")]
    Declined(String),
}

/// A connection to a server that has accepted the test.
#[derive(Debug)]
pub struct Control {
    writer: WriteHalf<TlsStream<TcpStream>>,
    answers: mpsc::Receiver<Result<Answer, ControlError>>,
    reading: tokio::task::JoinHandle<()>,
}

impl Drop for Control {
    /// The task holds a half of the connection, which would stay open as long as the server is silent.
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Control {
    /// Connects, shows the token, and waits for the test's turn; `queued` gets the position while it waits.
    pub async fn connect(
        server: SocketAddr,
        token: &Token,
        queued: impl FnMut(usize),
    ) -> Result<(Self, Welcome), ConnectError> {
        Self::begin(secure(open(server).await?, server, token).await?, server, token, queued).await
    }

    /// Connects as a monitor, which waits for no turn.
    pub async fn watch(server: SocketAddr, token: &Token) -> Result<(Self, Welcome), ConnectError> {
        let stream = secure(open(server).await?, server, token).await?;
        let (control, welcome) = Self::greet(stream, server, token, true, |_| {}).await?;
        if !welcome.monitor {
            let old = "it is too old to be watched continuously: update it".to_owned();
            return Err(ConnectError::NotOurs(server, old));
        }
        Ok((control, welcome))
    }

    /// As [`Self::connect`], over a connection that exists.
    pub async fn begin(
        stream: TlsStream<TcpStream>,
        server: SocketAddr,
        token: &Token,
        queued: impl FnMut(usize),
    ) -> Result<(Self, Welcome), ConnectError> {
        Self::greet(stream, server, token, false, queued).await
    }

    async fn greet(
        stream: TlsStream<TcpStream>,
        server: SocketAddr,
        token: &Token,
        monitor: bool,
        mut queued: impl FnMut(usize),
    ) -> Result<(Self, Welcome), ConnectError> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let not_ours = |error: ControlError| ConnectError::NotOurs(server, error.to_string());
        let hello = Request::Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            secret: token.secret(),
            monitor,
        };
        send(&mut writer, &hello).await.map_err(not_ours)?;
        loop {
            let answer = tokio::time::timeout(QUEUE_PATIENCE, receive(&mut reader, LONGEST_ANSWER)).await;
            match answer.map_err(|_| ConnectError::Silent(server))?.map_err(not_ours)? {
                Answer::Queued { position } => queued(position),
                Answer::Welcome(welcome) => {
                    let (answers, received) = mpsc::channel(64);
                    let reading = tokio::spawn(read_all(reader, answers));
                    return Ok((Self { writer, answers: received, reading }, *welcome));
                }
                Answer::Refused { reason } => return Err(ConnectError::Declined(reason)),
                Answer::Noted | Answer::Records(_) => {
                    return Err(ConnectError::NotOurs(server, "it sent an unexpected answer".to_owned()));
                }
            }
        }
    }

    /// Sends a request.
    pub async fn send(&mut self, request: &Request) -> Result<(), ControlError> {
        send(&mut self.writer, request).await
    }

    /// The next answer, if one has arrived.
    pub fn poll(&mut self) -> Option<Result<Answer, ControlError>> {
        match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(mpsc::error::TryRecvError::Empty) => None,
            Err(mpsc::error::TryRecvError::Disconnected) => {
                Some(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()))
            }
        }
    }

    /// Sends a request. Under load the answer may take as long as the queue is; only a full send buffer makes this wait, for
    /// `patience` at most. The error says why the server cannot be asked.
    pub async fn ask(&mut self, request: &Request, patience: Duration) -> Result<(), String> {
        match tokio::time::timeout(patience, self.send(request)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("the connection to the server failed: {error}")),
            Err(_) => Err("the server does not read".to_owned()),
        }
    }

    /// The next answer.
    pub async fn answer(&mut self) -> Result<Answer, ControlError> {
        self.answers.recv().await.unwrap_or_else(|| Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()))
    }
}

async fn open(server: SocketAddr) -> Result<TcpStream, ConnectError> {
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(server)).await;
    stream.map_err(|_| ConnectError::Silent(server))?.map_err(|error| ConnectError::Refused(server, error))
}

/// Begins TLS with the server that the token names.
pub async fn secure(
    stream: TcpStream,
    server: SocketAddr,
    token: &Token,
) -> Result<TlsStream<TcpStream>, ConnectError> {
    let _ = stream.set_nodelay(true);
    let name = ServerName::try_from(OWN_NAME).expect("a DNS name");
    let connecting = TlsConnector::from(Arc::new(pinned(token))).connect(name, stream);
    let stream = tokio::time::timeout(PATIENCE, connecting).await.map_err(|_| ConnectError::Silent(server))?;
    stream.map_err(|error| {
        let is_pin = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<Error>())
            .is_some_and(|inner| matches!(inner, Error::InvalidCertificate(_)));
        if is_pin { ConnectError::AnotherServer(server) } else { ConnectError::NotOurs(server, error.to_string()) }
    })
}

async fn read_all(mut reader: ReadHalf<TlsStream<TcpStream>>, answers: mpsc::Sender<Result<Answer, ControlError>>) {
    loop {
        let answer = receive(&mut reader, LONGEST_ANSWER).await;
        let is_last = answer.is_err();
        if answers.send(answer).await.is_err() || is_last {
            return;
        }
    }
}
