//! Reads the request that the virtual machine was started with.
//!
//! The request is a file of QEMU's firmware configuration (`-fw_cfg`). Its content is read anew at each access, so a
//! restored machine reads the file of its own command line. The saved state fixes the size of the file, so NULs follow
//! the document.

use std::fs::File;
use std::io::{self, Read};

use super::InitError;

const FILE: &str = "/sys/firmware/qemu_fw_cfg/by_name/opt/bufferscope/request/raw";
/// The kernel returns this much at a time.
const PAGE_BYTES: usize = 4096;

pub(super) fn read() -> Result<Vec<u8>, InitError> {
    File::open(FILE).and_then(until_nul).map_err(InitError::step(format!("reading {FILE}")))
}

/// Returns the bytes before the first NUL. Reading stops there because each page takes longer: the device is read from
/// its start for every page.
fn until_nul(mut file: impl Read) -> io::Result<Vec<u8>> {
    let mut document = Vec::new();
    let mut page = [0; PAGE_BYTES];
    loop {
        let read = file.read(&mut page)?;
        let text = page[..read].split(|&byte| byte == 0).next().unwrap_or_default();
        document.extend_from_slice(text);
        if read == 0 || text.len() < read {
            return Ok(document);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_ends_at_its_first_nul() {
        let padded = [&b"{\"seed\":1}"[..], &[0; 9000], b"left over"].concat();
        assert_eq!(until_nul(&padded[..]).unwrap(), b"{\"seed\":1}");
    }

    #[test]
    fn a_short_read_is_not_the_end() {
        let pieces = (&b"{\"se"[..]).chain(&b"ed\":1}\0left over"[..]);
        assert_eq!(until_nul(pieces).unwrap(), b"{\"seed\":1}");
        assert_eq!(until_nul(&b"without a NUL"[..]).unwrap(), b"without a NUL");
    }

    #[test]
    fn a_document_may_fill_any_number_of_pages() {
        for length in [PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 3 * PAGE_BYTES] {
            let padded = [vec![b'x'; length], vec![0; PAGE_BYTES]].concat();
            assert_eq!(until_nul(&padded[..]).unwrap().len(), length);
        }
    }
}
