//! A certificate from files, which browsers trust, beside the server's own one.
//!
//! Clients with a token ask for the name `bufferscope` and get the server's own certificate, whose fingerprint is in the token. So
//! a certificate from files may be renewed, with another key, and no token changes. Everybody else, that is browsers, gets the
//! one from the files.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;

/// The name for which clients with a token ask (SNI).
pub const OWN_NAME: &str = "bufferscope";
/// A chain is no longer.
const MOST_CERTIFICATES: usize = 16;

/// The files, and what they had when they were read last.
pub struct Files {
    certificate: PathBuf,
    key: PathBuf,
    present: RwLock<Arc<CertifiedKey>>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Files({:?}, {:?})", self.certificate, self.key)
    }
}

impl Files {
    /// Reads a certificate, followed by those of its issuers, and its private key (PEM).
    pub fn read(certificate: PathBuf, key: PathBuf) -> Result<Self, String> {
        let present = RwLock::new(Arc::new(read(&certificate, &key)?));
        Ok(Self { certificate, key, present })
    }

    /// Reads them again; if they are wrong, the former ones stay.
    pub fn reload(&self) -> Result<(), String> {
        let new = Arc::new(read(&self.certificate, &self.key)?);
        *self.present.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    /// The names in the certificate, without those with a wildcard.
    pub fn names(&self) -> Vec<String> {
        let present = self.present();
        let certificate = present.end_entity_cert().ok();
        let certificate = certificate.and_then(|der| webpki::EndEntityCert::try_from(der).ok());
        let names = certificate.iter().flat_map(|certificate| certificate.valid_dns_names());
        names.filter(|name| !name.starts_with('*')).map(str::to_owned).collect()
    }

    fn present(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.present.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn read(certificate: &PathBuf, key: &PathBuf) -> Result<CertifiedKey, String> {
    let wrong = |file: &PathBuf, error: &dyn fmt::Display| format!("{}: {error}", file.display());
    let of_certificate = |error| wrong(certificate, &error);
    let chain = CertificateDer::pem_file_iter(certificate).map_err(of_certificate)?;
    let chain: Vec<_> = chain.take(MOST_CERTIFICATES).collect::<Result<_, _>>().map_err(of_certificate)?;
    let Some(first) = chain.first() else { return Err(wrong(certificate, &"it has no certificate in PEM")) };
    webpki::EndEntityCert::try_from(first).map_err(|error| wrong(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    CertifiedKey::from_der(chain, private, &default_provider())
        .map_err(|error| format!("{} and {} do not belong together: {error}", certificate.display(), key.display()))
}

/// Chooses between the server's own certificate and that of the files.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) own: Arc<CertifiedKey>,
    pub(super) files: Option<Arc<Files>>,
}

impl ResolvesServerCert for Choice {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let wants_own = hello.server_name() == Some(OWN_NAME);
        let files = self.files.as_ref().filter(|_| !wants_own);
        Some(files.map_or_else(|| Arc::clone(&self.own), |files| files.present()))
    }
}
