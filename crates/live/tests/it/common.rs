//! A server in this process or as a program of its own, and clients of every kind.
#![allow(unreachable_pub, reason = "the modules beside this one use it")]

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bufferscope_live::client::control::{ConnectError, Control, secure};
use bufferscope_live::client::{self, Measurement, measure};
use bufferscope_live::server::certificate::Identity;
use bufferscope_live::server::{Settings, serve};
use bufferscope_live::wire::SessionId;
use bufferscope_live::wire::control::{PhaseKind, Welcome};
use bufferscope_live::wire::load::{Key, Opening, Purpose, SendBuffer};
use bufferscope_live::wire::probe::{Cookie, Kind, PACKET_BYTES, Packet};
use bufferscope_live::wire::token::Token;
use tokio::net::{TcpSocket, TcpStream};

pub mod nq;

/// What takes longer than this on any machine has failed.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server in this process, which ends with this.
pub struct Server {
    pub address: SocketAddr,
    pub token: Token,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Server {
    pub fn start(change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_with(change, |token| token)
    }

    pub fn start_with(change: impl FnOnce(&mut Settings), as_token: impl FnOnce(Token) -> Token) -> Self {
        let mut settings = Settings { listen: vec![(Ipv4Addr::LOCALHOST, 0).into()], ..Settings::default() };
        change(&mut settings);
        let identity = Identity::generate().unwrap();
        let token = as_token(Token::generate(identity.certificate()));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ready, address) = std::sync::mpsc::channel();
        let of_server = token.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                tokio::select! {
                    served = serve(settings, identity, of_server, |found| ready.send(found[0]).unwrap()) => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        let address = address.recv_timeout(PATIENCE).unwrap();
        Self { address, token, stop: Some(stop), thread: Some(thread) }
    }

    /// Connects, and waits for the welcome.
    pub async fn enter(&self) -> Result<(Control, Welcome), ConnectError> {
        Control::connect(self.address, &self.token, |_| {}).await
    }

    /// Runs a short test with these phases.
    pub async fn measure(&self, phases: &[PhaseKind]) -> Result<Measurement, ConnectError> {
        let interrupted = std::sync::atomic::AtomicBool::new(false);
        measure(&short(self.address, &self.token, phases), &interrupted, |_| {}).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking(), "the server's thread panicked");
    }
}

/// A test of one to two seconds for each phase.
pub fn short(server: SocketAddr, token: &Token, phases: &[PhaseKind]) -> client::Settings {
    client::Settings {
        server,
        token: token.clone(),
        phases: phases.to_vec(),
        flows: Some(2),
        congestion: String::new(),
        send_buffer: SendBuffer::Short,
        interface: None,
        at_most: Duration::from_secs(2),
        flood: false,
        interval: Duration::from_millis(10),
        idle: Duration::from_secs(1),
        cool_down: Duration::from_secs(1),
    }
}

/// Connects from an address of this machine.
pub async fn connect_from(source: IpAddr, server: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((source, 0).into()).unwrap();
    tokio::time::timeout(PATIENCE, socket.connect(server)).await.unwrap().unwrap()
}

/// Connects from an address of this machine, and waits for the welcome.
pub async fn enter_from(
    source: IpAddr,
    server: SocketAddr,
    token: &Token,
    queued: impl FnMut(usize),
) -> Result<(Control, Welcome), ConnectError> {
    let stream = secure(connect_from(source, server).await, server, token).await?;
    Control::begin(stream, server, token, queued).await
}

/// Waits until something is so.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not within {} s: {what}", PATIENCE.as_secs());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub fn key(welcome: &Welcome) -> Key {
    let byte = |at: usize| u8::from_str_radix(&welcome.key[2 * at..2 * at + 2], 16).unwrap();
    std::array::from_fn(byte)
}

pub fn opening(welcome: &Welcome, purpose: Purpose, index: u16) -> Opening {
    let (session, key, send_buffer) = (welcome.session, key(welcome), SendBuffer::Short);
    Opening { session, key, purpose, send_buffer, index, congestion: String::new() }
}

/// A client of the probes that does whatever a test wants.
pub struct Prober {
    pub socket: UdpSocket,
    pub session: SessionId,
    seq: u64,
}

impl Prober {
    pub fn new(source: [u8; 4], server: SocketAddr, session: SessionId) -> Self {
        let socket = UdpSocket::bind(SocketAddr::from((source, 0))).unwrap();
        socket.connect(server).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        Self { socket, session, seq: 0 }
    }

    pub fn ask(&mut self, cookie: Cookie) {
        self.seq += 1;
        self.socket.send(&Packet::request(self.session, self.seq, 0, 1, cookie).bytes()).unwrap();
    }

    /// The next packet that is not the server's own probe; `None`: none comes.
    pub fn answer(&self) -> Option<Packet> {
        std::iter::from_fn(|| self.receive()).find(|packet| packet.kind != Kind::Ladder)
    }

    pub fn receive(&self) -> Option<Packet> {
        let mut bytes = [0; 2 * PACKET_BYTES];
        let length = self.socket.recv(&mut bytes).ok()?;
        Some(Packet::parse(&bytes[..length]).expect("a packet of the protocol"))
    }

    /// Asks, until there is an answer.
    pub fn exchange(&mut self, cookie: Cookie) -> Packet {
        for _ in 0..20 {
            self.ask(cookie);
            if let Some(packet) = self.answer() {
                return packet;
            }
        }
        panic!("the server does not answer");
    }
}

/// The program `bufferscope-live serve`.
pub struct Program {
    pub child: Child,
    pub address: SocketAddr,
    pub token: Token,
}

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bufferscope-live"))
}

impl Program {
    pub fn start(options: &[&str]) -> Self {
        Self::start_as(program(), options)
    }

    pub fn start_as(mut program: Command, options: &[&str]) -> Self {
        let mut child = program
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().unwrap().contains("--token")).unwrap().unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        let after = |word: &str| words[words.iter().position(|found| *found == word).unwrap() + 1];
        Self { address: after("measure").parse().unwrap(), token: after("--token").parse().unwrap(), child }
    }

    /// Its descriptors and threads.
    pub fn uses(&self) -> [usize; 2] {
        ["fd", "task"].map(|what| std::fs::read_dir(format!("/proc/{}/{what}", self.child.id())).unwrap().count())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
