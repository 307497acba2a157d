//! Why the kernel refuses a request: an error's code and, if the socket wants it, an explanation (`NETLINK_EXT_ACK`).

use std::fmt::{self, Display, Formatter};
use std::io;

use nix::errno::Errno;

use super::{ALIGNMENT, HEADER_BYTES, Malformed, attributes};
use crate::bytes::read_u32;

/// Bytes of an error's code.
const CODE_BYTES: usize = 4;
/// `NLM_F_CAPPED`: the error repeats the header of the request, but not its body.
const CAPPED: u16 = 0x100;
/// `NLM_F_ACK_TLVS`: the error has attributes.
const EXPLAINED: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLMSGERR_ATTR_OFFS: u16 = 2;

/// Why a request failed.
#[derive(Debug)]
pub struct Refusal {
    /// The error.
    pub source: io::Error,
    /// What the kernel says about it, if anything.
    pub text: Option<String>,
    /// Where in the body of the request the attribute begins that the kernel objects to, if it names one.
    pub at: Option<usize>,
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)?;
        self.text.iter().try_for_each(|text| write!(f, ": {text}"))
    }
}

impl std::error::Error for Refusal {}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Self {
        Self { source, text: None, at: None }
    }
}

impl From<Errno> for Refusal {
    fn from(code: Errno) -> Self {
        io::Error::from(code).into()
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Self {
        io::Error::from(malformed).into()
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        refusal.source
    }
}

/// The refusal in an error message with these flags; `None` if it is the confirmation of a request.
pub(super) fn parse(flags: u16, payload: &[u8]) -> Result<Option<Refusal>, Malformed> {
    let code = read_u32(payload, 0).ok_or(Malformed("an error without a code"))? as i32;
    let code = code.checked_neg().ok_or(Malformed("an impossible error code"))?;
    if code == 0 {
        return Ok(None);
    }
    let mut refusal = Refusal::from(Errno::from_raw(code));
    if flags & EXPLAINED != 0 {
        explain(&mut refusal, flags, payload)?;
    }
    Ok(Some(refusal))
}

/// Reads the attributes, which follow what the error repeats of the request.
fn explain(refusal: &mut Refusal, flags: u16, payload: &[u8]) -> Result<(), Malformed> {
    let cut = Malformed("an error's explanation is cut off");
    let repeated = match flags & CAPPED {
        0 => read_u32(payload, CODE_BYTES).ok_or(cut)? as usize,
        _ => HEADER_BYTES,
    };
    let rest = payload.get(CODE_BYTES + repeated.next_multiple_of(ALIGNMENT)..).ok_or(cut)?;
    for attribute in attributes(rest) {
        match attribute? {
            (NLMSGERR_ATTR_MSG, value) => {
                let text = value.strip_suffix(b"\0").unwrap_or(value);
                refusal.text = Some(String::from_utf8_lossy(text).into_owned());
            }
            (NLMSGERR_ATTR_OFFS, value) => {
                // The kernel counts from the beginning of the message.
                refusal.at = (read_u32(value, 0).ok_or(cut)? as usize).checked_sub(HEADER_BYTES);
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::{push_attribute, question};

    /// `EINVAL` for a request with a body of 28 bytes.
    fn explained(flags: u16) -> Vec<u8> {
        let mut bytes = (-22_i32).to_ne_bytes().to_vec();
        let request = question(36, 5, 1, &[7; 28]);
        bytes.extend(if flags & CAPPED == 0 { &request[..] } else { &request[..HEADER_BYTES] });
        push_attribute(&mut bytes, NLMSGERR_ATTR_MSG, b"integer out of range\0");
        push_attribute(&mut bytes, NLMSGERR_ATTR_OFFS, &40_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn an_error_of_code_0_is_a_confirmation() {
        assert!(parse(0, &0_i32.to_ne_bytes()).unwrap().is_none());
        let refusal = parse(0, &(-2_i32).to_ne_bytes()).unwrap().unwrap();
        assert_eq!(refusal.source.kind(), io::ErrorKind::NotFound);
        assert_eq!((refusal.text, refusal.at), (None, None));
        assert!(parse(0, &i32::MIN.to_ne_bytes()).is_err());
        assert!(parse(0, &[0; 3]).is_err());
    }

    #[test]
    fn an_explanation_follows_the_request_or_its_header() {
        for flags in [EXPLAINED, EXPLAINED | CAPPED] {
            let refusal = parse(flags, &explained(flags)).unwrap().unwrap();
            assert_eq!(refusal.to_string(), "Invalid argument (os error 22): integer out of range", "{flags:#x}");
            assert_eq!(refusal.at, Some(24), "{flags:#x}");
        }
        let unexplained = parse(0, &explained(0)).unwrap().unwrap();
        assert_eq!((unexplained.text, unexplained.at), (None, None));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(flags: u16, bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse(flags, &bytes);
        }

        #[test]
        fn a_flipped_byte_never_panics(at in 0_usize..76, value: u8) {
            let mut bytes = explained(EXPLAINED);
            bytes[at] = value;
            let _ = parse(EXPLAINED, &bytes);
        }
    }
}
