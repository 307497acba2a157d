//! Writes packets that a kernel has captured.

use std::io::{self, Write};

use bufferscope_records::packets::{self, SeenPacket};

use crate::blocks::Blocks;

/// A file that is being written. It has one interface per vantage point.
#[derive(Debug)]
pub struct Recording<W> {
    blocks: Blocks<W>,
    /// Packets by interface.
    packets: Vec<u64>,
}

impl<W: Write> Recording<W> {
    /// Begins a file with these interfaces, each with its name and a description.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(
        interfaces: &[(String, String)],
        snaplen: u32,
        (application, comment): (&str, &str),
        out: W,
    ) -> io::Result<Self> {
        let mut blocks = Blocks::begin(out, application, comment)?;
        for (name, description) in interfaces {
            blocks.interface(name, description, snaplen)?;
        }
        Ok(Self { blocks, packets: vec![0; interfaces.len()] })
    }

    /// Writes a packet. `data` is what was captured of its `length` bytes.
    ///
    /// # Errors
    /// Those of `out`, and if there is no such interface.
    pub fn packet(&mut self, interface: usize, t_ns: u64, data: &[u8], length: u32) -> io::Result<()> {
        let count = self.packets.get_mut(interface).ok_or_else(|| no_such(interface))?;
        *count += 1;
        self.blocks.packet(interface as u32, t_ns, data, length, None)
    }

    /// Writes the packets of a [payload](packets), which has the numbers of the interfaces.
    ///
    /// # Errors
    /// Those of `out`, and if the payload is malformed.
    pub fn payload(&mut self, payload: &[u8]) -> io::Result<()> {
        packets::read(payload).try_for_each(|packet| {
            let SeenPacket { t_ns, interface, length, data } =
                packet.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.packet(interface as usize, t_ns, data, length)
        })
    }

    /// Completes the file: the run ended at `end_ns`. Returns the writer, and the packets by interface.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self, end_ns: u64) -> io::Result<(W, Vec<u64>)> {
        for (interface, packets) in (0..).zip(&self.packets) {
            self.blocks.statistics(interface, end_ns, *packets)?;
        }
        Ok((self.blocks.finish()?, self.packets))
    }
}

fn no_such(interface: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a packet of the interface {interface}, which does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Recording<Vec<u8>> {
        let interfaces = [("h1>h2 wire".to_owned(), "one".to_owned()), ("h1>h2 arrived".to_owned(), "two".to_owned())];
        Recording::begin(&interfaces, 96, ("a program", "a comment"), Vec::new()).unwrap()
    }

    #[test]
    fn a_payload_becomes_packets_of_its_interfaces() {
        let mut payload = Vec::new();
        for (interface, t_ns) in [(1, 5), (0, 6), (1, 7)] {
            packets::push(&mut payload, &SeenPacket { t_ns, interface, length: 1514, data: &[0xab; 5] });
        }
        let mut recording = recording();
        let start = recording.blocks.finish().unwrap().len();
        recording = self::recording();
        recording.payload(&payload).unwrap();
        let (bytes, packets) = recording.finish(9).unwrap();
        assert_eq!(packets, [1, 2]);
        // Each packet is a block of 32 bytes around 8 of data; each interface ends with its statistics.
        assert_eq!(bytes.len(), start + 3 * 40 + 2 * 64);
    }

    #[test]
    fn malformed_payloads_are_refused() {
        let mut payload = Vec::new();
        packets::push(&mut payload, &SeenPacket { t_ns: 0, interface: 2, length: 60, data: &[] });
        let error = recording().payload(&payload).unwrap_err();
        assert!(error.to_string().contains("interface 2"), "{error}");
        let error = recording().payload(&payload[..7]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
