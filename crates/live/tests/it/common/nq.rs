//! A server of responsiveness that can misbehave.
#![allow(unreachable_pub, reason = "one file of tests uses it")]

use std::convert::Infallible;
use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// How a server misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not at all.
    None,
    /// It speaks HTTP/1.1 only.
    OnlyHttp1,
    /// The configuration is elsewhere.
    Redirect,
    /// It has no room for a test.
    Busy,
    /// The configuration has no `upload_url`.
    MissingKey,
    /// The configuration is of another version.
    Version2,
    /// The configuration never ends.
    LongConfig,
    /// Uploads are too large for it.
    RefusesUploads,
    /// Its large object stops after 2 MB.
    Stalls,
    /// Its large object is small.
    SmallObject,
    /// It answers with something else than TLS.
    Garbage,
    /// It closes connections.
    Closes,
    /// Its first header never ends.
    EndlessHeader,
    /// It accepts connections and is silent.
    Silent,
}

/// A server in this process, which ends with this.
pub struct NqServer {
    pub address: SocketAddr,
    /// The SHA-256 of its certificate.
    pub fingerprint: [u8; 32],
    /// Connections that it accepted.
    pub accepted: Arc<AtomicU64>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for NqServer {
    fn drop(&mut self) {
        self.runtime.take().expect("it runs").shutdown_background();
    }
}

impl NqServer {
    pub fn start(fault: Fault) -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let der = certificate.der().to_vec();
        let fingerprint = ring::digest::digest(&ring::digest::SHA256, &der).as_ref().try_into().unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(der)], key)
            .unwrap();
        config.alpn_protocols = match fault {
            Fault::OnlyHttp1 | Fault::EndlessHeader => vec![b"http/1.1".to_vec()],
            _ => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicU64::new(0));
        let (tls, counted) = (TlsAcceptor::from(Arc::new(config)), Arc::clone(&accepted));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(stream, tls.clone(), address, fault));
            }
        });
        Self { address, fingerprint, accepted, runtime: Some(runtime) }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, address: SocketAddr, fault: Fault) {
    match fault {
        Fault::Closes => return,
        Fault::Garbage => {
            let mut stream = stream.into_std().unwrap();
            let _ = stream.write_all(&[0x47; 4096]);
            return;
        }
        Fault::Silent => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            return;
        }
        _ => {}
    }
    let Ok(mut stream) = tls.accept(stream).await else { return };
    if fault == Fault::EndlessHeader {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nlong: ").await;
        while stream.write_all(&[b'x'; 1024]).await.is_ok() {}
        return;
    }
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| answer(request, address, fault));
    let io = TokioIo::new(stream);
    if is_http2 {
        let _ = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(8 << 20)
            .initial_connection_window_size(16 << 20)
            .max_send_buf_size(64 << 10)
            .serve_connection(io, service)
            .await;
    } else {
        let _ = http1::Builder::new().serve_connection(io, service).await;
    }
}

async fn answer(
    mut request: Request<Incoming>,
    address: SocketAddr,
    fault: Fault,
) -> Result<Response<Object>, Infallible> {
    let with = |status: u16, object: Object| Response::builder().status(status).body(object).unwrap();
    Ok(match request.uri().path() {
        "/.well-known/nq" => match fault {
            Fault::Redirect => {
                Response::builder().status(302).header("location", "/other").body(Object::Bytes(0, None)).unwrap()
            }
            Fault::Busy => {
                Response::builder().status(429).header("retry-after", "17").body(Object::Bytes(0, None)).unwrap()
            }
            Fault::LongConfig => with(200, Object::Bytes(u64::MAX, None)),
            _ => with(200, Object::Text(Some(config(address, fault).into()))),
        },
        "/small" => with(200, Object::Bytes(1, None)),
        "/large" => match fault {
            Fault::Stalls => {
                with(200, Object::Bytes(2 << 20, Some(Box::pin(tokio::time::sleep(Duration::from_secs(60))))))
            }
            Fault::SmallObject => with(200, Object::Bytes(10_000, None)),
            _ => with(200, Object::Bytes(8 << 30, None)),
        },
        "/up" if fault == Fault::RefusesUploads => with(413, Object::Bytes(0, None)),
        "/up" => {
            let body = request.body_mut();
            while std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context))
                .await
                .is_some_and(|frame| frame.is_ok())
            {}
            with(200, Object::Bytes(0, None))
        }
        _ => with(404, Object::Bytes(0, None)),
    })
}

fn config(address: SocketAddr, fault: Fault) -> String {
    let version = if fault == Fault::Version2 { 2 } else { 1 };
    let upload = if fault == Fault::MissingKey { "upload" } else { "upload_url" };
    let port = address.port();
    format!(
        r#"{{"version": {version}, "urls": {{"large_download_url": "https://localhost:{port}/large",
        "small_download_url": "https://localhost:{port}/small", "{upload}": "https://localhost:{port}/up"}},
        "test_endpoint": "127.0.0.1"}}"#
    )
}

/// The body of an answer.
enum Object {
    Text(Option<Bytes>),
    /// So many bytes, and then a pause before the end.
    Bytes(u64, Option<Pin<Box<tokio::time::Sleep>>>),
}

impl Body for Object {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const PIECE: &[u8] = &[0; 32 << 10];
        match &mut *self {
            Self::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Bytes(0, None) => Poll::Ready(None),
            Self::Bytes(0, Some(pause)) => pause.as_mut().poll(context).map(|()| None),
            Self::Bytes(left, _) => {
                let bytes = PIECE.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= bytes as u64;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECE[..bytes])))))
            }
        }
    }
}
