//! The cryptography of DTLS by `ring` and `webpki`, which TLS uses here, too: AES-128-GCM, X25519 and P-256, ECDSA with P-256.
//!
//! `dimpl` tests what it is given against known answers before it uses it ([`dimpl::crypto::CryptoProvider::validate`]).

use std::fmt;

use dimpl::crypto::{
    Aad, ActiveKeyExchange, Buf, Cipher, CryptoProvider, Dtls12CipherSuite, Dtls13CipherSuite, HashAlgorithm,
    HashContext, HashProvider, HmacProvider, KeyProvider, NamedGroup, Nonce, SecureRandom, SignatureAlgorithm,
    SignatureVerifier, SigningKey, SupportedDtls12CipherSuite, SupportedDtls13CipherSuite, SupportedKxGroup, TmpBuf,
};
use dimpl::{CryptoError, CryptoOperation};
use ring::aead::{self, LessSafeKey, UnboundKey, quic};
use ring::agreement::{self, EphemeralPrivateKey, UnparsedPublicKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use ring::{digest, hmac};
use tokio_rustls::rustls::pki_types::CertificateDer;

const KEY_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
/// Of a nonce, the part that each record of DTLS 1.2 carries.
const EXPLICIT_NONCE_BYTES: usize = 8;
const FIXED_NONCE_BYTES: usize = 4;

/// The parts.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: &[&Group::X25519, &Group::P256],
        signature_verification: &Ring,
        key_provider: &Ring,
        secure_random: &Ring,
        hash_provider: &Ring,
        hmac_provider: &Ring,
        cipher_suites: &[&Ring],
        // Never used, but the library wants one.
        dtls13_cipher_suites: &[&Ring],
    }
}

#[derive(Debug)]
struct Ring;

fn failed(operation: CryptoOperation) -> CryptoError {
    CryptoError::OperationFailed(operation)
}

// Records

struct Sealing(LessSafeKey);

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealing(..)")
    }
}

fn cipher(algorithm: &'static aead::Algorithm, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
    let key = UnboundKey::new(algorithm, key).map_err(|_| failed(CryptoOperation::CreateCipher))?;
    Ok(Box::new(Sealing(LessSafeKey::new(key))))
}

impl Cipher for Sealing {
    fn encrypt(&mut self, plaintext: &mut Buf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let sealed = self.0.seal_in_place_append_tag(nonce, aead::Aad::from(&aad.0[..]), plaintext);
        sealed.map_err(|_| failed(CryptoOperation::Encrypt))
    }

    fn decrypt(&mut self, ciphertext: &mut TmpBuf<'_>, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let opened = self.0.open_in_place(nonce, aead::Aad::from(&aad.0[..]), ciphertext.as_mut());
        let length = opened.map_err(|_| failed(CryptoOperation::Decrypt))?.len();
        ciphertext.truncate(length);
        Ok(())
    }
}

impl SupportedDtls12CipherSuite for Ring {
    fn suite(&self) -> Dtls12CipherSuite {
        Dtls12CipherSuite::ECDHE_ECDSA_AES128_GCM_SHA256
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_lengths(&self) -> (usize, usize, usize) {
        (0, KEY_BYTES, FIXED_NONCE_BYTES)
    }

    fn explicit_nonce_len(&self) -> usize {
        EXPLICIT_NONCE_BYTES
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        cipher(&aead::AES_128_GCM, key)
    }
}

impl SupportedDtls13CipherSuite for Ring {
    fn suite(&self) -> Dtls13CipherSuite {
        Dtls13CipherSuite::CHACHA20_POLY1305_SHA256
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_len(&self) -> usize {
        aead::CHACHA20_POLY1305.key_len()
    }

    fn iv_len(&self) -> usize {
        aead::NONCE_LEN
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        cipher(&aead::CHACHA20_POLY1305, key)
    }

    /// The first five bytes, as in QUIC; record numbers need two of them (RFC 9147, section 4.2.3).
    fn encrypt_sn(&self, sn_key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
        let mut mask = [0; 16];
        let key = quic::HeaderProtectionKey::new(&quic::CHACHA20, sn_key);
        if let Ok(bytes) = key.and_then(|key| key.new_mask(sample)) {
            mask[..bytes.len()].copy_from_slice(&bytes);
        }
        mask
    }
}

// Keys

#[derive(Clone, Copy, Debug)]
enum Group {
    X25519,
    P256,
}

impl Group {
    fn algorithm(self) -> &'static agreement::Algorithm {
        match self {
            Self::X25519 => &agreement::X25519,
            Self::P256 => &agreement::ECDH_P256,
        }
    }
}

impl SupportedKxGroup for Group {
    fn name(&self) -> NamedGroup {
        match self {
            Self::X25519 => NamedGroup::X25519,
            Self::P256 => NamedGroup::Secp256r1,
        }
    }

    fn start_exchange(&self, mut buf: Buf) -> Result<Box<dyn ActiveKeyExchange>, CryptoError> {
        let private = EphemeralPrivateKey::generate(self.algorithm(), &SystemRandom::new())
            .map_err(|_| failed(CryptoOperation::GenerateEphemeralKey))?;
        let public = private.compute_public_key().map_err(|_| failed(CryptoOperation::ComputePublicKey))?;
        buf.clear();
        buf.extend_from_slice(public.as_ref());
        Ok(Box::new(Exchange { group: *self, private, public: buf }))
    }
}

struct Exchange {
    group: Group,
    private: EphemeralPrivateKey,
    public: Buf,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange(..)")
    }
}

impl ActiveKeyExchange for Exchange {
    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn complete(self: Box<Self>, peer_pub: &[u8], out: &mut Buf) -> Result<(), CryptoError> {
        let peer = UnparsedPublicKey::new(self.group.algorithm(), peer_pub);
        agreement::agree_ephemeral(self.private, &peer, |secret| {
            out.clear();
            out.extend_from_slice(secret);
        })
        .map_err(|_| CryptoError::InvalidPublicKey(SupportedKxGroup::name(&self.group)))
    }

    fn group(&self) -> NamedGroup {
        SupportedKxGroup::name(&self.group)
    }
}

struct Own(EcdsaKeyPair);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Own(..)")
    }
}

impl KeyProvider for Ring {
    fn load_private_key(&self, key_der: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key_der, &SystemRandom::new());
        Ok(Box::new(Own(key.map_err(|_| CryptoError::InvalidPrivateKey)?)))
    }
}

impl SigningKey for Own {
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), CryptoError> {
        if hash != HashAlgorithm::SHA256 {
            return Err(CryptoError::SigningKeyHashMismatch { key_hash: HashAlgorithm::SHA256, requested: hash });
        }
        let signature = self.0.sign(&SystemRandom::new(), data).map_err(|_| failed(CryptoOperation::Sign))?;
        out.clear();
        out.extend_from_slice(signature.as_ref());
        Ok(())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        &[HashAlgorithm::SHA256]
    }
}

impl SignatureVerifier for Ring {
    /// Checks what the page has signed. Its certificate is known by its fingerprint.
    fn verify_signature(
        &self,
        cert_der: &[u8],
        data: &[u8],
        signature: &[u8],
        hash: HashAlgorithm,
        algorithm: SignatureAlgorithm,
    ) -> Result<(), CryptoError> {
        let group = NamedGroup::Secp256r1;
        if (algorithm, hash) != (SignatureAlgorithm::ECDSA, HashAlgorithm::SHA256) {
            return Err(CryptoError::UnsupportedSignatureVerification { signature: algorithm, hash, group });
        }
        let certificate = CertificateDer::from(cert_der);
        let certificate =
            webpki::EndEntityCert::try_from(&certificate).map_err(|_| CryptoError::CertificateParseFailed)?;
        let checked = certificate.verify_signature(webpki::ring::ECDSA_P256_SHA256, data, signature);
        checked.map_err(|_| CryptoError::SignatureVerificationFailed { signature: algorithm, hash, group })
    }
}

// Hashes

struct Hash(digest::Context);

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash(..)")
    }
}

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn clone_and_finalize(&self, out: &mut Buf) {
        out.clear();
        out.extend_from_slice(self.0.clone().finish().as_ref());
    }
}

impl HashProvider for Ring {
    fn create_hash(&self, algorithm: HashAlgorithm) -> Box<dyn HashContext> {
        // There is no suite with another one than these.
        let algorithm = if algorithm == HashAlgorithm::SHA384 { &digest::SHA384 } else { &digest::SHA256 };
        Box::new(Hash(digest::Context::new(algorithm)))
    }
}

impl HmacProvider for Ring {
    fn hmac(&self, hash: HashAlgorithm, key: &[u8], data: &[u8], out: &mut [u8]) -> Result<usize, CryptoError> {
        let algorithm = match hash {
            HashAlgorithm::SHA256 => hmac::HMAC_SHA256,
            HashAlgorithm::SHA384 => hmac::HMAC_SHA384,
            _ => return Err(CryptoError::UnsupportedHmacHash(hash)),
        };
        let tag = hmac::sign(&hmac::Key::new(algorithm, key), data);
        let length = tag.as_ref().len();
        out.get_mut(..length).ok_or(failed(CryptoOperation::ComputeHmac))?.copy_from_slice(tag.as_ref());
        Ok(length)
    }
}

impl SecureRandom for Ring {
    fn fill(&self, buf: &mut [u8]) -> Result<(), CryptoError> {
        SystemRandom::new().fill(buf).map_err(|_| failed(CryptoOperation::FillRandom))
    }
}
