//! How many sockets a namespace has: the tables of `/proc/net` (proc(5)).

use std::io;

use super::namespace::Namespace;

/// The tables of those kinds of sockets on which a program waits or communicates. A TCP socket is in its table once it
/// listens or connects.
const TABLES: [&str; 7] = ["tcp", "tcp6", "udp", "udp6", "icmp", "raw", "packet"];

/// Counts the sockets of a namespace. The calling thread is in the namespace afterwards.
pub(crate) fn count(namespace: &Namespace) -> io::Result<usize> {
    namespace.enter()?;
    let mut sockets = 0;
    for table in TABLES {
        let path = format!("/proc/thread-self/net/{table}");
        let text = match std::fs::read_to_string(&path) {
            // This kernel has no IPv6, or no packet sockets.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        sockets += rows(&text).ok_or_else(|| io::Error::other(format!("{path} is not as proc(5) describes it")))?;
    }
    Ok(sockets)
}

/// Rows below the heading; `None` if there is no heading.
fn rows(text: &str) -> Option<usize> {
    let (heading, rows) = text.split_once('\n')?;
    let first = heading.split_ascii_whitespace().next()?;
    ["sl", "sk"].contains(&first).then(|| rows.lines().count())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TCP: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
        0: 00000000:1451 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0 100 0 0 10 0\n   \
        1: 0100000A:8D2C 0600000A:1451 01 00000000:00000000 00:00000000 00000000     0        0 9 1 0 20 4 30 10 -1\n";

    #[test]
    fn each_row_is_a_socket() {
        assert_eq!(rows(TCP), Some(2));
        assert_eq!(rows("sk       RefCnt Type Proto  Iface R Rmem   User   Inode\n"), Some(0));
    }

    #[test]
    fn another_table_is_refused() {
        for text in ["", "sl", "nonsense\n", "\n 0: 1:2\n"] {
            assert_eq!(rows(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_counted_or_refused(text in "(  sl|sk)?.{0,20}\n?(([0-9A-F:]{0,9} ){0,5}\n?){0,4}") {
            let _ = rows(&text);
        }
    }
}
