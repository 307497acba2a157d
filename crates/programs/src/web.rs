//! `web`: pages, as browsers fetch them over HTTP/1.1: first the document, then the objects that it refers to. A few
//! connections stay open until the page is complete, each with one request at a time (RFC 9112, section 9).
//!
//! A connection is given its next object when it is free, and a new connection is given its first when its handshake is
//! done, as in browsers' socket pools. A page without objects comes over one connection, which the server closes after
//! it.
//!
//! Departures from browsers: nothing is cached, connections are not kept for the next page, and computing takes no
//! time. A browser has to parse the document before it knows the objects, and finds some of them late.

use std::collections::BTreeMap;

use bufferscope_scenario::{PageObjects, WebTraffic};

use crate::agenda::{Agenda, Task};
use crate::random::{Random, Uniform};
use crate::sockets::{Ask, Opening, Role, Sockets, Transfer};
use crate::starts::Starts;
use crate::streams::{Run, Stream};

/// The browsers of an entry of traffic, and its server.
#[derive(Debug)]
pub(crate) struct Web {
    parameters: WebTraffic,
    /// Pages begun.
    begun: u64,
    opened: u32,
    /// Pages under way, by the number of their first connection.
    pages: BTreeMap<u32, Page>,
    /// The page that each connection belongs to.
    owners: BTreeMap<u32, u32>,
}

#[derive(Debug)]
struct Page {
    started_ns: u64,
    connections: Vec<u32>,
    /// Objects requested, including the document, and those that have arrived.
    asked: u32,
    arrived: u32,
}

impl Stream for Web {
    type Parameters = WebTraffic;
    const HAS_TO_BE_STOPPED: bool = false;

    fn new<U: Uniform>(parameters: &WebTraffic, _: Random, starts: &mut Starts<U>, agenda: &mut Agenda) -> Self {
        let web = Self {
            parameters: parameters.clone(),
            begun: 0,
            opened: 0,
            pages: BTreeMap::new(),
            owners: BTreeMap::new(),
        };
        web.plan(0, starts, agenda);
        web
    }

    /// Begins a page, and plans the next.
    fn on_task<U: Uniform, S: Sockets>(&mut self, _: Task, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        let first = self.opened + 1;
        self.pages.insert(first, Page { started_ns: run.now_ns, connections: Vec::new(), asked: 0, arrived: 0 });
        self.open(first, run.sockets)?;
        if self.parameters.objects.is_none() {
            self.ask(first, self.parameters.bytes, true, run.sockets)?;
        }
        self.begun += 1;
        self.plan(run.now_ns, run.starts, run.agenda);
        Ok(())
    }

    fn on_established<U: Uniform, S: Sockets>(&mut self, number: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        if self.parameters.objects.is_some() { self.ask_for_more(number, run.sockets) } else { Ok(()) }
    }

    /// What was requested on a connection has arrived.
    fn on_arrived<U: Uniform, S: Sockets>(&mut self, number: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        let Some(&first) = self.owners.get(&number) else { return Ok(()) };
        let Some(page) = self.pages.get_mut(&first) else { return Ok(()) };
        page.arrived += 1;
        if page.arrived == self.parameters.parts() {
            return self.complete(run.now_ns, first, run.sockets);
        }
        if page.arrived == 1 {
            // The document's connection continues to fetch.
            for _ in 1..self.parameters.connections() {
                self.open(first, run.sockets)?;
            }
        }
        self.ask_for_more(number, run.sockets)
    }

    fn unfinished(&mut self) -> Vec<Transfer> {
        let bytes = self.parameters.page_bytes();
        self.owners.clear();
        let pages = std::mem::take(&mut self.pages).into_iter();
        pages
            .map(|(connection, page)| Transfer { connection, started_ns: page.started_ns, finished_ns: None, bytes })
            .collect()
    }
}

impl Web {
    fn plan<U: Uniform>(&self, now_ns: u64, starts: &mut Starts<U>, agenda: &mut Agenda) {
        if let Some(at_ns) = starts.after(self.begun.saturating_mul(self.parameters.interval_ns)) {
            agenda.plan(at_ns.max(now_ns), Task::Begin);
        }
    }

    fn complete<S: Sockets>(&mut self, now_ns: u64, first: u32, sockets: &mut S) -> Result<(), S::Error> {
        let Some(page) = self.pages.remove(&first) else { return Ok(()) };
        for &connection in &page.connections {
            self.owners.remove(&connection);
            if self.parameters.objects.is_some() {
                sockets.close(connection)?;
            }
        }
        sockets.record(Transfer {
            connection: first,
            started_ns: page.started_ns,
            finished_ns: Some(now_ns),
            bytes: self.parameters.page_bytes(),
        })
    }

    fn open<S: Sockets>(&mut self, first: u32, sockets: &mut S) -> Result<(), S::Error> {
        self.opened += 1;
        let number = self.opened;
        self.owners.insert(number, first);
        self.pages.entry(first).and_modify(|page| page.connections.push(number));
        sockets.open(&Opening { number, data_from: Role::Server, expects: None })
    }

    /// Gives a free connection something to fetch, if anything is left.
    fn ask_for_more<S: Sockets>(&mut self, number: u32, sockets: &mut S) -> Result<(), S::Error> {
        let page = self.owners.get(&number).and_then(|first| self.pages.get(first));
        match (page.map(|page| page.asked), self.parameters.objects) {
            (Some(0), _) => self.ask(number, self.parameters.bytes, false, sockets),
            (Some(asked), Some(objects)) if asked <= objects.count => self.ask(number, objects.bytes, false, sockets),
            _ => Ok(()),
        }
    }

    fn ask<S: Sockets>(
        &mut self,
        number: u32,
        response_bytes: u64,
        last: bool,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        if let Some(page) = self.owners.get(&number).and_then(|first| self.pages.get_mut(first)) {
            page.asked += 1;
        }
        sockets.ask(number, Ask { request_bytes: self.parameters.request_bytes.into(), response_bytes, last })
    }
}

/// What a page consists of.
trait Parts {
    /// The document and its objects.
    fn parts(&self) -> u32;
    /// Their payload.
    fn page_bytes(&self) -> u64;
    /// The number of connections to open.
    fn connections(&self) -> u32;
}

impl Parts for WebTraffic {
    fn parts(&self) -> u32 {
        1 + self.objects.map_or(0, |objects| objects.count)
    }

    fn page_bytes(&self) -> u64 {
        self.bytes + self.objects.map_or(0, |PageObjects { count, bytes, .. }| u64::from(count) * bytes)
    }

    fn connections(&self) -> u32 {
        self.objects.map_or(1, |objects| objects.connections.min(objects.count))
    }
}
