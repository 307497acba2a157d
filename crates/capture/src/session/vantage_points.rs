//! Where packets were captured.
//!
//! Each interface of each file is a vantage point. Files that continue each other, as `tcpdump -C` writes them, are one
//! vantage point: an interface of the same name and link type, whose first packet comes after the last one of a file
//! that is over. So are the sections of a pcapng file. Where a stream has the packets of several interfaces, each of
//! these is a vantage point.

use std::collections::HashMap;

use serde::Serialize;

use super::SessionError;
use super::files::Files;
use crate::decode::{Origin, link_name, origin};
use crate::file::Packet;

/// The most interfaces of one stream. The packets of further ones are those of the stream.
const MOST_ORIGINS: usize = 64;

/// A vantage point where packets were captured.
#[derive(Clone, Debug, Serialize)]
pub struct VantagePoint {
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
    /// The interfaces of files that are this vantage point. An interface whose stream has the packets of several is of
    /// all.
    #[serde(skip)]
    parts: Vec<(usize, usize)>,
    #[serde(skip)]
    origin: Option<Origin>,
}

#[derive(Debug, Default)]
pub(super) struct VantagePoints {
    places: Vec<VantagePoint>,
    /// By file and interface.
    indices: Vec<Vec<Option<u16>>>,
    /// Of streams with the packets of several interfaces.
    origins: HashMap<(usize, usize, Origin), u16>,
    last_origin: Option<((usize, usize, Origin), u16)>,
}

impl VantagePoints {
    /// The vantage point of a packet, which is counted there.
    #[inline]
    pub(super) fn of(
        &mut self,
        file: usize,
        packet: &Packet<'_>,
        t_ns: i64,
        files: &Files,
    ) -> Result<u16, SessionError> {
        let index = match origin(files.interface(file, packet.interface).link_type, packet.data) {
            None => self.of_interface(file, packet.interface, t_ns, files)?,
            Some(origin) => self.of_origin((file, packet.interface, origin), t_ns, files)?,
        };
        let place = &mut self.places[usize::from(index)];
        place.packets += 1;
        place.backwards += u64::from(t_ns < place.last_ns);
        place.last_ns = place.last_ns.max(t_ns);
        Ok(index)
    }

    #[inline]
    fn of_interface(&mut self, file: usize, interface: usize, t_ns: i64, files: &Files) -> Result<u16, SessionError> {
        if let Some(index) = self.indices.get(file).and_then(|those| those.get(interface)).copied().flatten() {
            return Ok(index);
        }
        let number = self.find(file, interface, None, t_ns, files)?;
        if self.indices.len() <= file {
            self.indices.resize(file + 1, Vec::new());
        }
        if self.indices[file].len() <= interface {
            self.indices[file].resize(interface + 1, None);
        }
        self.indices[file][interface] = Some(number);
        Ok(number)
    }

    fn of_origin(&mut self, key: (usize, usize, Origin), t_ns: i64, files: &Files) -> Result<u16, SessionError> {
        if let Some((last, index)) = self.last_origin
            && last == key
        {
            return Ok(index);
        }
        let (file, interface, origin) = key;
        let index = match self.origins.get(&key) {
            Some(index) => *index,
            None if self.origins.len() >= MOST_ORIGINS => return self.of_interface(file, interface, t_ns, files),
            None => {
                let index = self.find(file, interface, Some(origin), t_ns, files)?;
                self.origins.insert(key, index);
                index
            }
        };
        self.last_origin = Some((key, index));
        Ok(index)
    }

    #[inline]
    pub(super) fn link_type(&self, place: u16) -> u16 {
        self.places[usize::from(place)].link_type
    }

    /// The number of the file of a vantage point, of several the first, and of files that show a direction each
    /// likewise.
    #[inline]
    pub(super) fn file(&self, place: u16, files: &Files) -> u16 {
        files.clock(self.places[usize::from(place)].parts[0].0)
    }

    /// The vantage points, with what the files' statistics say at their ends.
    pub(super) fn finish(mut self, files: &Files) -> Vec<VantagePoint> {
        let mut counted = std::collections::HashSet::new();
        for place in &mut self.places {
            let parts = place.parts.iter().filter(|part| counted.insert(**part));
            let known = parts.filter_map(|&(file, interface)| files.interface(file, interface).lost);
            place.lost = known.fold(None, |sum, more| Some(sum.unwrap_or(0_u64).saturating_add(more)));
        }
        self.places
    }

    #[cold]
    fn find(
        &mut self,
        file: usize,
        interface: usize,
        origin: Option<Origin>,
        t_ns: i64,
        files: &Files,
    ) -> Result<u16, SessionError> {
        let is_continued =
            |place: &VantagePoint| place.origin == origin && continues(place, file, interface, t_ns, files);
        let continued = self.places.iter().position(is_continued);
        let index = continued.unwrap_or(self.places.len());
        let number = u16::try_from(index)
            .map_err(|_| SessionError::TooMany { what: "interfaces", allowed: usize::from(u16::MAX) + 1 })?;
        if continued.is_none() {
            self.places.push(begun(file, interface, origin, t_ns, files));
        }
        self.places[index].parts.push((file, interface));
        Ok(number)
    }
}

fn begun(file: usize, interface: usize, origin: Option<Origin>, t_ns: i64, files: &Files) -> VantagePoint {
    let known = files.interface(file, interface);
    let name = match (&known.name, origin) {
        (Some(name), Some(origin)) => Some(format!("{} ({name})", origin.name())),
        (name, origin) => origin.map(Origin::name).or_else(|| name.clone()),
    };
    VantagePoint {
        file: files.name(file).to_owned(),
        interface: name,
        link_type: known.link_type,
        link_name: link_name(known.link_type),
        snap_bytes: known.snap_bytes,
        packets: 0,
        lost: None,
        first_ns: t_ns,
        last_ns: t_ns,
        backwards: 0,
        parts: Vec::new(),
        origin,
    }
}

/// Whether an interface of a file goes on where a vantage point ended: in a later section of the file, or in a later
/// file.
fn continues(place: &VantagePoint, file: usize, interface: usize, t_ns: i64, files: &Files) -> bool {
    let here = files.interface(file, interface);
    let is_over = |&(before, part): &(usize, usize)| match before == file {
        true => files.interface(file, part).section < here.section,
        false => files.is_over(before),
    };
    let (first, part) = place.parts[0];
    place.link_type == here.link_type
        && files.interface(first, part).name == here.name
        && place.last_ns <= t_ns
        && place.parts.iter().all(is_over)
}
