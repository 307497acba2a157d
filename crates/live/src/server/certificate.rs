//! The server's certificate: self-signed, and known to clients by its fingerprint in the token.

use std::io;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::sign::CertifiedKey;

mod files;

use files::Choice;
pub use files::{Files, OWN_NAME};

/// A certificate (DER) with its private key (PKCS #8).
#[derive(Clone, Serialize, Deserialize)]
pub struct Identity {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity(..)")
    }
}

impl Identity {
    /// A new one.
    pub fn generate() -> io::Result<Self> {
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let parameters = CertificateParams::new(vec![OWN_NAME.to_owned()]).map_err(io::Error::other)?;
        let certificate = parameters.self_signed(&key).map_err(io::Error::other)?;
        Ok(Self { certificate: certificate.der().to_vec(), key: key.serialize_der() })
    }

    /// The certificate (DER).
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The private key (PKCS #8).
    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Accepts TLS 1.3 connections with it, and those of browsers with the certificate of the files if there are any.
    /// Clients of HTTP name one of these protocols (ALPN).
    pub(super) fn acceptor(&self, protocols: &[&[u8]], files: Option<Arc<Files>>) -> io::Result<TlsAcceptor> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.clone()));
        let provider = Arc::new(default_provider());
        let chain = vec![CertificateDer::from(self.certificate.clone())];
        let own = Arc::new(CertifiedKey::from_der(chain, key, &provider).map_err(io::Error::other)?);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&tokio_rustls::rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Choice { own, files }));
        // Our own clients name none.
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        // Clients never resume a connection, so tickets would only take memory.
        config.send_tls13_tickets = 0;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}
