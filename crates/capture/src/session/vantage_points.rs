//! The vantage points at which packets were captured.
//!
//! Each interface of each file is a vantage point. Files that continue each other, as `tcpdump -C` writes them, are one
//! vantage point: an interface of the same name and link type, whose first packet comes after the last one of a file
//! that is over. The same applies to the sections of a pcapng file. If a stream has the packets of several interfaces,
//! each of these is a vantage point.

use std::collections::HashMap;

use serde::Serialize;

use super::SessionError;
use super::files::Files;
use crate::decode::{Origin, link_name, origin};
use crate::file::Packet;

/// Maximum number of interfaces in one stream. The packets of further ones are assigned to the stream itself.
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
    /// The snap length; 0: no limit.
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
    /// The interfaces of files that belong to this vantage point. An interface whose stream has the packets of several
    /// belongs to all of these.
    #[serde(skip)]
    parts: Vec<(usize, usize)>,
    #[serde(skip)]
    origin: Option<Origin>,
}

#[derive(Debug, Default)]
pub(super) struct VantagePoints {
    vantage_points: Vec<VantagePoint>,
    /// By file and interface.
    indices: Vec<Vec<Option<u16>>>,
    /// By origin, for streams with the packets of several interfaces.
    origins: HashMap<(usize, usize, Origin), u16>,
    last_origin: Option<((usize, usize, Origin), u16)>,
}

impl VantagePoints {
    /// Returns the vantage point of a packet, and counts the packet there.
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
        let vantage_point = &mut self.vantage_points[usize::from(index)];
        vantage_point.packets += 1;
        vantage_point.backwards += u64::from(t_ns < vantage_point.last_ns);
        vantage_point.last_ns = vantage_point.last_ns.max(t_ns);
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
    pub(super) fn link_type(&self, vantage_point: u16) -> u16 {
        self.vantage_points[usize::from(vantage_point)].link_type
    }

    /// The number of a vantage point's file: the first, if it has several, or if two files have one direction each.
    #[inline]
    pub(super) fn file(&self, vantage_point: u16, files: &Files) -> u16 {
        files.clock(self.vantage_points[usize::from(vantage_point)].parts[0].0)
    }

    /// The vantage points, with the statistics at the ends of the files.
    pub(super) fn finish(mut self, files: &Files) -> Vec<VantagePoint> {
        let mut counted = std::collections::HashSet::new();
        for vantage_point in &mut self.vantage_points {
            let parts = vantage_point.parts.iter().filter(|part| counted.insert(**part));
            let known = parts.filter_map(|&(file, interface)| files.interface(file, interface).lost);
            vantage_point.lost = known.fold(None, |sum, more| Some(sum.unwrap_or(0_u64).saturating_add(more)));
        }
        self.vantage_points
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
        let is_continued = |vantage_point: &VantagePoint| {
            vantage_point.origin == origin && continues(vantage_point, file, interface, t_ns, files)
        };
        let continued = self.vantage_points.iter().position(is_continued);
        let index = continued.unwrap_or(self.vantage_points.len());
        let number = u16::try_from(index)
            .map_err(|_| SessionError::TooMany { what: "interfaces", allowed: usize::from(u16::MAX) + 1 })?;
        if continued.is_none() {
            self.vantage_points.push(begun(file, interface, origin, t_ns, files));
        }
        self.vantage_points[index].parts.push((file, interface));
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

/// Whether an interface of a file continues a vantage point: in a later section of the file, or in a later file.
fn continues(vantage_point: &VantagePoint, file: usize, interface: usize, t_ns: i64, files: &Files) -> bool {
    let here = files.interface(file, interface);
    let is_over = |&(before, part): &(usize, usize)| match before == file {
        true => files.interface(file, part).section < here.section,
        false => files.is_over(before),
    };
    let (first, part) = vantage_point.parts[0];
    vantage_point.link_type == here.link_type
        && files.interface(first, part).name == here.name
        && vantage_point.last_ns <= t_ns
        && vantage_point.parts.iter().all(is_over)
}
