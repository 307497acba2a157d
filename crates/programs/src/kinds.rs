//! Declares the listed programs. The list is in `lib.rs`.

/// Declares the modules of the listed programs, and in the module `list` the enums over them. Each kind of traffic is in
/// one of the lists.
macro_rules! programs {
    (
        streams { $($stream_file:ident::$stream:ident,)+ }
        datagrams { $($file:ident::$name:ident,)+ }
    ) => {
        $(mod $stream_file;)+
        $(mod $file;)+

        /// The programs, by the transport that they use.
        mod list {
            use bufferscope_scenario::{PingTraffic, TrafficKind};

            use crate::agenda::{Agenda, Task};
            use crate::datagrams::{Arrival, Counted, DatagramSockets, Datagrams, OverUdp, Plans};
            use crate::random::{Random, Uniform};
            use crate::sockets::{Sockets, Transfer};
            use crate::starts::Starts;
            use crate::streams::{Run, Stream};

            /// What carries out a kind of traffic.
            #[derive(Clone, Copy, Debug, PartialEq)]
            pub enum Programs<'a> {
                /// A [`StreamProgram`](crate::StreamProgram).
                Streams,
                /// A [`DatagramProgram`](crate::DatagramProgram).
                Datagrams,
                /// The host's `ping`, with these parameters.
                Ping(&'a PingTraffic),
            }

            impl<'a> Programs<'a> {
                /// What carries out this kind of traffic.
                pub fn of(kind: &'a TrafficKind) -> Self {
                    match kind {
                        $(TrafficKind::$stream(_) => Self::Streams,)+
                        $(TrafficKind::$name(_) => Self::Datagrams,)+
                        TrafficKind::Ping(parameters) => Self::Ping(parameters),
                    }
                }
            }

            /// The programs of an entry of traffic over TCP.
            #[derive(Debug)]
            pub(crate) enum StreamKind {
                $($stream(crate::$stream_file::$stream),)+
            }

            impl StreamKind {
                pub(crate) fn new<U: Uniform>(
                    kind: &TrafficKind,
                    random: Random,
                    starts: &mut Starts<U>,
                    agenda: &mut Agenda,
                ) -> Option<Self> {
                    match kind {
                        $(TrafficKind::$stream(parameters) => {
                            Some(Self::$stream(Stream::new(parameters, random, starts, agenda)))
                        })+
                        $(TrafficKind::$name(_) => None,)+
                        TrafficKind::Ping(_) => None,
                    }
                }

                pub(crate) fn has_to_be_stopped(&self) -> bool {
                    match self {
                        $(Self::$stream(_) => crate::$stream_file::$stream::HAS_TO_BE_STOPPED,)+
                    }
                }

                pub(crate) fn on_task<U: Uniform, S: Sockets>(
                    &mut self,
                    task: Task,
                    run: &mut Run<'_, U, S>,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$stream(program) => program.on_task(task, run),)+
                    }
                }

                pub(crate) fn on_established<U: Uniform, S: Sockets>(
                    &mut self,
                    number: u32,
                    run: &mut Run<'_, U, S>,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$stream(program) => program.on_established(number, run),)+
                    }
                }

                pub(crate) fn on_arrived<U: Uniform, S: Sockets>(
                    &mut self,
                    number: u32,
                    run: &mut Run<'_, U, S>,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$stream(program) => program.on_arrived(number, run),)+
                    }
                }

                pub(crate) fn on_closed<U: Uniform, S: Sockets>(
                    &mut self,
                    number: u32,
                    run: &mut Run<'_, U, S>,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$stream(program) => program.on_closed(number, run),)+
                    }
                }

                pub(crate) fn on_stop<S: Sockets>(
                    &mut self,
                    agenda: &mut Agenda,
                    sockets: &mut S,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$stream(program) => program.on_stop(agenda, sockets),)+
                    }
                }

                pub(crate) fn bring_stop_forward(&mut self, stop_ns: u64) {
                    match self {
                        $(Self::$stream(program) => program.bring_stop_forward(stop_ns),)+
                    }
                }

                pub(crate) fn set_flows<U: Uniform, S: Sockets>(
                    &mut self,
                    flows: u32,
                    run: &mut Run<'_, U, S>,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$stream(program) => program.set_flows(flows, run),)+
                    }
                }

                pub(crate) fn unfinished(&mut self) -> Vec<Transfer> {
                    match self {
                        $(Self::$stream(program) => program.unfinished(),)+
                    }
                }
            }

            /// The programs of an entry of traffic over UDP.
            #[derive(Debug)]
            pub(crate) enum DatagramKind {
                $($name(<crate::$file::$name as OverUdp>::Programs),)+
            }

            impl DatagramKind {
                pub(crate) fn new<U: Uniform>(kind: &TrafficKind, spread_ns: u64, plans: &mut Plans<U>) -> Option<Self> {
                    match kind {
                        $(TrafficKind::$name(parameters) => {
                            Some(Self::$name(crate::$file::$name::programs(parameters, spread_ns, plans)))
                        })+
                        $(TrafficKind::$stream(_) => None,)+
                        TrafficKind::Ping(_) => None,
                    }
                }

                pub(crate) fn flows(&self) -> u32 {
                    match self {
                        $(Self::$name(program) => program.flows(),)+
                    }
                }

                pub(crate) fn streams(&self) -> u32 {
                    match self {
                        $(Self::$name(program) => program.streams(),)+
                    }
                }

                pub(crate) fn clients(&self) -> u32 {
                    match self {
                        $(Self::$name(program) => program.clients(),)+
                    }
                }

                pub(crate) fn awaits(&self) -> bool {
                    match self {
                        $(Self::$name(_) => <crate::$file::$name as OverUdp>::Programs::AWAITS,)+
                    }
                }

                pub(crate) fn is_punctual(&self) -> bool {
                    match self {
                        $(Self::$name(_) => crate::$file::$name::PUNCTUAL,)+
                    }
                }

                #[inline]
                pub(crate) fn on_task<U: Uniform, S: DatagramSockets>(
                    &mut self,
                    task: u64,
                    now_ns: u64,
                    plans: &mut Plans<U>,
                    sockets: &mut S,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$name(program) => program.on_task(task, now_ns, plans, sockets),)+
                    }
                }

                #[inline]
                pub(crate) fn on_arrival<U: Uniform, S: DatagramSockets>(
                    &mut self,
                    arrival: Arrival,
                    plans: &mut Plans<U>,
                    sockets: &mut S,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$name(program) => program.on_arrival(arrival, plans, sockets),)+
                    }
                }

                pub(crate) fn on_loss(&mut self, stream: u32, number: u64) {
                    match self {
                        $(Self::$name(program) => program.on_loss(stream, number),)+
                    }
                }

                #[inline]
                pub(crate) fn settle<S: DatagramSockets>(&mut self, now_ns: u64, sockets: &mut S) -> Result<(), S::Error> {
                    match self {
                        $(Self::$name(program) => program.settle(now_ns, sockets),)+
                    }
                }

                pub(crate) fn bring_stop_forward<U: Uniform>(&mut self, stop_ns: u64, plans: &mut Plans<U>) {
                    match self {
                        $(Self::$name(program) => program.bring_stop_forward(stop_ns, plans),)+
                    }
                }

                pub(crate) fn counted(&self, flow: u32) -> Option<Counted> {
                    match self {
                        $(Self::$name(program) => program.counted(flow),)+
                    }
                }

                pub(crate) fn first_timeout_ns(&self) -> Option<u64> {
                    match self {
                        $(Self::$name(program) => program.first_timeout_ns(),)+
                    }
                }

                pub(crate) fn last_timeout_ns(&self) -> Option<u64> {
                    match self {
                        $(Self::$name(program) => program.last_timeout_ns(),)+
                    }
                }

                pub(crate) fn is_waiting(&self) -> bool {
                    match self {
                        $(Self::$name(program) => program.is_waiting(),)+
                    }
                }

                pub(crate) fn finish<U: Uniform, S: DatagramSockets>(
                    &mut self,
                    plans: &mut Plans<U>,
                    sockets: &mut S,
                ) -> Result<(), S::Error> {
                    match self {
                        $(Self::$name(program) => program.finish(plans, sockets),)+
                    }
                }

                pub(crate) fn resume<U: Uniform>(&mut self, now_ns: u64, plans: &mut Plans<U>) {
                    match self {
                        $(Self::$name(program) => program.resume(now_ns, plans),)+
                    }
                }

                pub(crate) fn give_up<S: DatagramSockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
                    match self {
                        $(Self::$name(program) => program.give_up(sockets),)+
                    }
                }
            }
        }
    };
}
