//! TLS as a client: which servers are trusted.

use std::fmt;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme, version,
};

use crate::wire::token::Token;

/// Length of a fingerprint.
const FINGERPRINT_BYTES: usize = 32;

/// Which servers are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those whose certificate an authority of this system has signed.
    System,
    /// The one whose certificate (DER) has this SHA-256.
    Fingerprint([u8; FINGERPRINT_BYTES]),
    /// All.
    Any,
}

/// Reads a fingerprint: 64 hexadecimal digits, with or without colons, as `openssl x509 -fingerprint -sha256` prints it.
pub fn parse_fingerprint(text: &str) -> Result<[u8; FINGERPRINT_BYTES], String> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    let value = |pair: &[u8]| Some((char::from(pair[0]).to_digit(16)? * 16 + char::from(pair[1]).to_digit(16)?) as u8);
    let bytes: Option<Vec<u8>> =
        digits.chunks(2).map(|pair| (pair.len() == 2).then(|| value(pair)).flatten()).collect();
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| "allowed: the SHA-256 of the server's certificate, 64 hexadecimal digits".to_owned())
}

/// TLS with any server; `protocols` are the names for ALPN, the preferred one first. Handshakes are always full ones: what is
/// measured must not depend on earlier connections.
pub fn config(trust: &Trust, protocols: &[&[u8]]) -> Result<ClientConfig, String> {
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = match trust {
        Trust::System => builder.with_root_certificates(roots()?).with_no_client_auth(),
        Trust::Any => builder
            .dangerous()
            .with_custom_certificate_verifier(Accepting::new(provider, |_: &[u8]| true))
            .with_no_client_auth(),
        Trust::Fingerprint(wanted) => {
            let wanted = *wanted;
            let is_wanted = move |certificate: &[u8]| digest(&SHA256, certificate).as_ref() == wanted;
            builder
                .dangerous()
                .with_custom_certificate_verifier(Accepting::new(provider, is_wanted))
                .with_no_client_auth()
        }
    };
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn roots() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("this system has no certificates of authorities to check the server's with: install the package \
                    ca-certificates, name a file of them in SSL_CERT_FILE, or use --fingerprint or --insecure"
            .to_owned());
    }
    Ok(roots)
}

/// TLS 1.3 with the server that a token names.
pub fn pinned(token: &Token) -> ClientConfig {
    let provider = Arc::new(default_provider());
    let token = token.clone();
    let names = move |certificate: &[u8]| token.names(certificate);
    ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&version::TLS13])
        .expect("the provider has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Accepting::new(provider, names))
        .with_no_client_auth()
}

/// Accepts certificates (DER) by a rule, whoever signed them, and checks that the server has the key.
struct Accepting<F> {
    accepts: F,
    provider: Arc<CryptoProvider>,
}

impl<F> Accepting<F> {
    fn new(provider: Arc<CryptoProvider>, accepts: F) -> Arc<Self> {
        Arc::new(Self { accepts, provider })
    }
}

impl<F> fmt::Debug for Accepting<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accepting(..)")
    }
}

impl<F: Fn(&[u8]) -> bool + Send + Sync> ServerCertVerifier for Accepting<F> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if (self.accepts)(certificate) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_with_and_without_colons() {
        let plain = "00ff".repeat(16);
        let expected: [u8; 32] = std::array::from_fn(|at| if at % 2 == 0 { 0 } else { 255 });
        assert_eq!(parse_fingerprint(&plain), Ok(expected));
        assert_eq!(parse_fingerprint(&["00:FF"; 16].join(":")), Ok(expected));
        for wrong in ["", "00", &plain[1..], &format!("{plain}00"), &plain.replace("ff", "fg"), "é"] {
            assert!(parse_fingerprint(wrong).is_err(), "{wrong}");
        }
    }
}
