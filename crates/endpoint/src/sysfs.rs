//! Numbers in files of sysfs that stay open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The current value of a number.
pub fn number_in(file: &File) -> io::Result<u64> {
    let mut text = [0; 32];
    let length = file.read_at(&mut text, 0)?;
    number(&text[..length]).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a counter that is no number"))
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_counter_of_sysfs_is_a_number_and_a_line_break() {
        assert_eq!(number(b"1514\n"), Some(1514));
        assert_eq!(number(b"18446744073709551615\n"), Some(u64::MAX));
        assert_eq!(number(b"\n"), None);
        assert_eq!(number(b"-1\n"), None);
    }

    proptest! {
        #[test]
        fn any_counter_is_read_or_refused(text in proptest::collection::vec(any::<u8>(), 0..32)) {
            let _ = number(&text);
        }
    }
}
