//! The token that a server prints and a client shows: a secret, and the fingerprint of the server's certificate.
//!
//! It is written as `<secret>-<fingerprint>` in lower-case base32 (RFC 4648) without padding: 80 bits of secret, 160 bits
//! of the SHA-256 of the certificate. A public server's token has the word `public` for the secret.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

const SECRET_BYTES: usize = 10;
const FINGERPRINT_BYTES: usize = 20;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const BITS: u32 = 5;
/// Stands for the secret in the token of a server that asks for none.
const PUBLIC: &str = "public";

/// What a client must know of a server.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// `None`: the server asks for none.
    secret: Option<[u8; SECRET_BYTES]>,
    fingerprint: [u8; FINGERPRINT_BYTES],
}

/// Not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a token as `bufferscope serve` prints it (16 letters or digits, a hyphen, 32 letters or digits; `public` for the first 16 if the server is public)"
)]
pub struct NotToken;

impl Token {
    /// A new secret for a server with this certificate (DER).
    pub fn generate(certificate: &[u8]) -> Self {
        let mut secret = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut secret).expect("the system has random numbers");
        Self { secret: Some(secret), fingerprint: fingerprint(certificate) }
    }

    /// The same secret with another certificate (DER).
    pub fn with_certificate(&self, certificate: &[u8]) -> Self {
        Self { secret: self.secret, fingerprint: fingerprint(certificate) }
    }

    /// The token of the same server for everybody: without a secret.
    pub fn public(&self) -> Self {
        Self { secret: None, ..*self }
    }

    /// Whether a certificate (DER) is that of the server that printed the token.
    pub fn names(&self, certificate: &[u8]) -> bool {
        are_equal(&self.fingerprint, &fingerprint(certificate))
    }

    /// The secret, as it is sent to the server; empty for a public server.
    pub fn secret(&self) -> String {
        self.secret.map_or_else(String::new, |secret| encode(&secret))
    }

    /// Whether this is the secret, or none is needed; takes the same time for each wrong one of the same length.
    pub fn admits(&self, secret: &str) -> bool {
        self.secret.is_none() || are_equal(self.secret().as_bytes(), secret.as_bytes())
    }
}

/// Compares in a time that depends on the lengths only.
pub fn are_equal(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b)));
    a.len() == b.len() && difference == 0
}

fn fingerprint(certificate: &[u8]) -> [u8; FINGERPRINT_BYTES] {
    let whole = digest(&SHA256, certificate);
    whole.as_ref()[..FINGERPRINT_BYTES].try_into().expect("SHA-256 is longer")
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = self.secret.map_or_else(|| PUBLIC.to_owned(), |secret| encode(&secret));
        write!(f, "{secret}-{}", encode(&self.fingerprint))
    }
}

/// Secrets do not get into logs by accident.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl FromStr for Token {
    type Err = NotToken;

    fn from_str(text: &str) -> Result<Self, NotToken> {
        let (secret, fingerprint) = text.trim().split_once('-').ok_or(NotToken)?;
        let secret = match secret {
            PUBLIC => None,
            secret => Some(decode(secret).ok_or(NotToken)?),
        };
        Ok(Self { secret, fingerprint: decode(fingerprint).ok_or(NotToken)? })
    }
}

/// Base32 of a multiple of five bytes.
fn encode(bytes: &[u8]) -> String {
    let (mut text, mut rest, mut bits) = (String::new(), 0_u32, 0);
    for &byte in bytes {
        rest = rest << 8 | u32::from(byte);
        bits += 8;
        while bits >= BITS {
            bits -= BITS;
            text.push(char::from(ALPHABET[(rest >> bits & 31) as usize]));
        }
    }
    text
}

fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    (text.len() == N * 8 / BITS as usize).then_some(())?;
    let (mut bytes, mut length, mut rest, mut bits) = ([0; N], 0, 0_u32, 0);
    for character in text.bytes() {
        let value = ALPHABET.iter().position(|&known| known == character.to_ascii_lowercase())?;
        rest = rest << BITS | value as u32;
        bits += BITS;
        if bits >= 8 {
            bits -= 8;
            bytes[length] = (rest >> bits) as u8;
            length += 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn base32_is_that_of_the_rfc() {
        // RFC 4648, section 10, in lower case: the vector whose length needs no padding.
        assert_eq!(encode(b"fooba"), "mzxw6ytb");
        assert_eq!(decode::<5>("MZXW6YTB"), Some(*b"fooba"));
    }

    #[test]
    fn a_token_is_read_as_it_was_printed_and_admits_its_secret_only() {
        let token = Token::generate(b"certificate");
        let read: Token = format!(" {token}\n").parse().unwrap();
        assert!(read == token && read.names(b"certificate") && !read.names(b"another"));
        assert!(token.admits(&read.secret()));
        assert!(!token.admits(&Token::generate(b"certificate").secret()));
        assert!(!token.admits(&read.secret()[1..]) && !token.admits(""));
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn a_public_token_has_the_fingerprint_only_and_its_server_admits_everybody() {
        let token = Token::generate(b"certificate");
        let public = token.public();
        assert!(public.to_string().starts_with("public-") && !public.to_string().contains(&token.secret()));
        let read: Token = public.to_string().parse().unwrap();
        assert!(read == public && read.names(b"certificate") && !read.names(b"another"));
        assert!(public.admits("") && public.admits(&token.secret()));
        assert!(!token.admits(&read.secret()), "a server with a secret does not admit those without");
    }

    proptest! {
        #[test]
        fn any_text_is_a_token_or_refused(text in ".{0,80}") {
            let _ = text.parse::<Token>();
        }
    }

    #[test]
    fn a_token_of_another_length_or_alphabet_is_refused() {
        let token = Token::generate(b"x").to_string();
        for wrong in [&token[1..], &token[..48], "", "-", &token.replace('-', ""), &token.replace('-', "-0")] {
            assert_eq!(wrong.parse::<Token>(), Err(NotToken), "{wrong}");
        }
    }
}
