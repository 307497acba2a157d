//! Certificates from files, beside the server's own one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Program, Server, program};
use bufferscope_live::client::control::Control;
use bufferscope_live::server::certificate::Files;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const NAME: &str = "test.example";

/// An authority, and the files of certificates that it issues.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    directory: TempDir,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = parameters.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(parameters, key), root, directory: tempfile::tempdir().unwrap() }
    }

    fn files(&self) -> [PathBuf; 2] {
        ["certificate.pem", "key.pem"].map(|name| self.directory.path().join(name))
    }

    /// Writes a new certificate with a new key; returns the certificate (DER).
    fn issue(&self) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec![NAME.to_owned(), format!("*.{NAME}")]).unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let [certificate_file, key_file] = self.files();
        std::fs::write(certificate_file, pem("CERTIFICATE", certificate.der())).unwrap();
        std::fs::write(key_file, pem("PRIVATE KEY", &key.serialize_der())).unwrap();
        certificate.der().clone()
    }

    /// The certificate that a browser gets, which must trust it.
    async fn seen(&self, server: SocketAddr, name: &'static str) -> std::io::Result<CertificateDer<'static>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let stream = TcpStream::connect(server).await?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name.try_into().unwrap(), stream).await?;
        Ok(stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned())
    }
}

/// RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in der.chunks(3) {
        let bits = three.iter().chain(&[0; 2]).take(3).fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        let digit = |at: usize| if at <= three.len() { char::from(ALPHABET[bits >> (18 - 6 * at) & 63]) } else { '=' };
        text.extend((0..4).map(digit));
    }
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn read(files: [PathBuf; 2]) -> Result<Files, String> {
    let [certificate, key] = files;
    Files::read(certificate, key)
}

#[tokio::test]
async fn browsers_get_the_certificate_of_the_files_and_tokens_stay_as_they_are() {
    let authority = Authority::new();
    let first = authority.issue();
    let files = Arc::new(read(authority.files()).unwrap());
    assert_eq!(files.names(), [NAME]);
    let server = Server::start(|settings| settings.certificate = Some(Arc::clone(&files)));
    assert_eq!(authority.seen(server.address, NAME).await.unwrap(), first);
    assert!(authority.seen(server.address, "other.example").await.is_err(), "another name");
    drop(server.enter().await.unwrap());
    let second = authority.issue();
    assert_eq!(authority.seen(server.address, NAME).await.unwrap(), first, "not before the files are read again");
    files.reload().unwrap();
    assert_eq!(authority.seen(server.address, NAME).await.unwrap(), second);
    drop(server.enter().await.unwrap());
    let [certificate, key] = authority.files();
    for (file, wrong) in [(&certificate, "-----BEGIN"), (&key, ""), (&certificate, "")] {
        let right = std::fs::read(file).unwrap();
        std::fs::write(file, wrong).unwrap();
        let refused = files.reload().unwrap_err();
        assert!(refused.contains(file.file_name().unwrap().to_str().unwrap()), "{refused}");
        std::fs::write(file, right).unwrap();
    }
    let kept = std::fs::read(&key).unwrap();
    authority.issue();
    std::fs::write(&key, kept).unwrap();
    assert!(files.reload().unwrap_err().contains("do not belong together"));
    assert_eq!(authority.seen(server.address, NAME).await.unwrap(), second, "the former one stays");
}

#[tokio::test]
async fn a_hangup_makes_the_program_read_its_certificate_again() {
    let authority = Authority::new();
    let first = authority.issue();
    let [certificate, key] = authority.files();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let server = Program::start(&["--certificate", &text(&certificate), "--key", &text(&key)]);
    assert_eq!(authority.seen(server.address, NAME).await.unwrap(), first);
    let second = authority.issue();
    let hang_up = nix::sys::signal::Signal::SIGHUP;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(server.child.id() as i32), hang_up).unwrap();
    let begun = Instant::now();
    while authority.seen(server.address, NAME).await.unwrap() != second {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(Control::connect(server.address, &server.token, |_| {}).await.is_ok());
}

#[test]
fn wrong_files_are_named_at_the_start_and_the_page_has_the_name_of_the_certificate() {
    let authority = Authority::new();
    authority.issue();
    let [certificate, key] = authority.files();
    let serve = |certificate: &Path, key: &Path| {
        let mut command = program();
        command.args(["serve", "--listen", "127.0.0.1:0", "--certificate"]).arg(certificate).arg("--key").arg(key);
        command
    };
    let refused = serve(&authority.directory.path().join("missing"), &key).output().unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("missing: "));
    assert!(!program().args(["serve", "--certificate"]).arg(&certificate).output().unwrap().status.success());
    let mut child = serve(&certificate, &key).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let page = lines.map_while(Result::ok).find(|line| line.contains("http")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(page.starts_with("  https://test.example:"), "{page}");
}
