//! Where packets were captured.
//!
//! Each interface of each file is a place. Files that continue each other, as `tcpdump -C` writes them, are one place: an
//! interface of the same name and link type, whose first packet comes after the last one of a file that is over.

use serde::Serialize;

use super::SessionError;
use super::files::Files;
use crate::decode::link_name;
use crate::file::Packet;

/// A place where packets were captured.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The file, or the first of several that continue each other.
    pub file: String,
    /// The interface's name, if the file has it.
    pub interface: Option<String>,
    /// The number of its link type.
    pub link_type: u16,
    /// The name of its link type; `None`: it can't be decoded.
    pub link_name: Option<&'static str>,
    /// How much of a packet was captured at most; 0: no limit.
    pub snap_bytes: u32,
    /// Packets captured here.
    pub packets: u64,
    /// Packets that the capture lost, by the file's own statistics; `None`: it has none.
    pub lost: Option<u64>,
    /// The time of the first packet, nanoseconds since 1970.
    pub first_ns: i64,
    /// The time of the last packet.
    pub last_ns: i64,
    /// Packets with an earlier time than one before them.
    pub backwards: u64,
    #[serde(skip)]
    parts: Vec<(usize, usize)>,
}

#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Place>,
    /// By file and interface.
    indices: Vec<Vec<Option<u16>>>,
}

impl Places {
    /// The place of a packet, which is counted there.
    #[inline]
    pub(super) fn of(
        &mut self,
        file: usize,
        packet: &Packet<'_>,
        t_ns: i64,
        files: &Files,
    ) -> Result<u16, SessionError> {
        let known = self.indices.get(file).and_then(|those| those.get(packet.interface)).copied().flatten();
        let index = match known {
            Some(index) => index,
            None => self.find(file, packet.interface, t_ns, files)?,
        };
        let place = &mut self.places[usize::from(index)];
        place.packets += 1;
        place.backwards += u64::from(t_ns < place.last_ns);
        place.last_ns = place.last_ns.max(t_ns);
        Ok(index)
    }

    #[inline]
    pub(super) fn link_type(&self, place: u16) -> u16 {
        self.places[usize::from(place)].link_type
    }

    /// The number of the file of a place, of several the first.
    #[inline]
    pub(super) fn file(&self, place: u16) -> u16 {
        self.places[usize::from(place)].parts[0].0 as u16
    }

    /// The places, with what the files' statistics say at their ends.
    pub(super) fn finish(mut self, files: &Files) -> Vec<Place> {
        for place in &mut self.places {
            let known = place.parts.iter().filter_map(|&(file, interface)| files.interface(file, interface).lost);
            place.lost = known.fold(None, |sum, more| Some(sum.unwrap_or(0_u64).saturating_add(more)));
        }
        self.places
    }

    #[cold]
    fn find(&mut self, file: usize, interface: usize, t_ns: i64, files: &Files) -> Result<u16, SessionError> {
        let continued = self.places.iter().position(|place| continues(place, file, interface, t_ns, files));
        let index = continued.unwrap_or(self.places.len());
        let number = u16::try_from(index)
            .map_err(|_| SessionError::TooMany { what: "interfaces", allowed: usize::from(u16::MAX) + 1 })?;
        if continued.is_none() {
            self.places.push(begun(file, interface, t_ns, files));
        }
        self.places[index].parts.push((file, interface));
        if self.indices.len() <= file {
            self.indices.resize(file + 1, Vec::new());
        }
        if self.indices[file].len() <= interface {
            self.indices[file].resize(interface + 1, None);
        }
        self.indices[file][interface] = Some(number);
        Ok(number)
    }
}

fn begun(file: usize, interface: usize, t_ns: i64, files: &Files) -> Place {
    let known = files.interface(file, interface);
    Place {
        file: files.name(file).to_owned(),
        interface: known.name.clone(),
        link_type: known.link_type,
        link_name: link_name(known.link_type),
        snap_bytes: known.snap_bytes,
        packets: 0,
        lost: None,
        first_ns: t_ns,
        last_ns: t_ns,
        backwards: 0,
        parts: Vec::new(),
    }
}

/// Whether an interface of a file goes on where a place ended.
fn continues(place: &Place, file: usize, interface: usize, t_ns: i64, files: &Files) -> bool {
    let here = files.interface(file, interface);
    let is_over = |&(before, _): &(usize, usize)| before != file && files.is_over(before);
    place.link_type == here.link_type
        && place.interface == here.name
        && place.last_ns <= t_ns
        && place.parts.iter().all(is_over)
}
