//! The values that a cell can hold, and how a column of them becomes an Arrow array.

use std::fmt::Debug;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray};
use arrow_schema::DataType;

use crate::names::{Name, Names};
#[cfg(feature = "parquet")]
use crate::parquet::Column;

/// A value that can be in a column.
pub(crate) trait Value: Copy {
    const DATA_TYPE: DataType;
    const NULLABLE: bool;
    /// The words of a column that has only these.
    const WORDS: Option<&'static [&'static str]> = None;
    /// The form in which a value is kept until its column becomes an array.
    type Stored: Copy + Debug;

    fn stored(self) -> Self::Stored;
    fn array(column: &[Self::Stored], names: &Names) -> ArrayRef;
    /// Appends the values to a column of a file.
    #[cfg(feature = "parquet")]
    fn encode(column: &[Self::Stored], names: &Names, into: &mut Column);
}

impl Value for u64 {
    const DATA_TYPE: DataType = DataType::Int64;
    const NULLABLE: bool = false;
    type Stored = i64;

    #[inline]
    fn stored(self) -> i64 {
        signed(self)
    }

    fn array(column: &[i64], _: &Names) -> ArrayRef {
        Arc::new(Int64Array::from(column.to_vec()))
    }

    #[cfg(feature = "parquet")]
    fn encode(column: &[i64], _: &Names, into: &mut Column) {
        into.integers(column);
    }
}

impl Value for Option<u64> {
    const DATA_TYPE: DataType = DataType::Int64;
    const NULLABLE: bool = true;
    type Stored = i64;

    #[inline]
    fn stored(self) -> i64 {
        self.map_or(NULL, signed)
    }

    fn array(column: &[i64], _: &Names) -> ArrayRef {
        Arc::new(if has_nulls(column) {
            column.iter().map(|&value| (value != NULL).then_some(value)).collect::<Int64Array>()
        } else {
            Int64Array::from(column.to_vec())
        })
    }

    #[cfg(feature = "parquet")]
    fn encode(column: &[i64], _: &Names, into: &mut Column) {
        if has_nulls(column) {
            into.integers_or(column, NULL);
        } else {
            into.integers(column);
        }
    }
}

impl Value for Option<bool> {
    const DATA_TYPE: DataType = DataType::Boolean;
    const NULLABLE: bool = true;
    type Stored = Self;

    fn stored(self) -> Self {
        self
    }

    fn array(column: &[Self], _: &Names) -> ArrayRef {
        Arc::new(column.iter().copied().collect::<BooleanArray>())
    }

    #[cfg(feature = "parquet")]
    fn encode(column: &[Self], _: &Names, into: &mut Column) {
        into.booleans(column.iter().copied());
    }
}

impl Value for Name {
    const DATA_TYPE: DataType = DataType::Utf8;
    const NULLABLE: bool = false;
    type Stored = Self;

    fn stored(self) -> Self {
        self
    }

    fn array(column: &[Self], names: &Names) -> ArrayRef {
        Arc::new(texts(column.iter().copied().map(Some), names))
    }

    #[cfg(feature = "parquet")]
    fn encode(column: &[Self], names: &Names, into: &mut Column) {
        encode_names(column.iter().copied().map(Some), names, into);
    }
}

impl Value for Option<Name> {
    const DATA_TYPE: DataType = DataType::Utf8;
    const NULLABLE: bool = true;
    type Stored = Self;

    fn stored(self) -> Self {
        self
    }

    fn array(column: &[Self], names: &Names) -> ArrayRef {
        Arc::new(texts(column.iter().copied(), names))
    }

    #[cfg(feature = "parquet")]
    fn encode(column: &[Self], names: &Names, into: &mut Column) {
        encode_names(column.iter().copied(), names, into);
    }
}

/// The source of the keys of texts that the program contains. A column has only one kind of them.
#[cfg(feature = "parquet")]
const STATIC: u64 = 0;

fn texts(values: impl Iterator<Item = Option<Name>>, names: &Names) -> StringArray {
    let mut column = StringBuilder::new();
    let mut text = String::new();
    for value in values {
        match value {
            None => column.append_null(),
            Some(name) => {
                text.clear();
                names.write(name, &mut text);
                column.append_value(&text);
            }
        }
    }
    column.finish()
}

#[cfg(feature = "parquet")]
fn encode_names(values: impl Iterator<Item = Option<Name>>, names: &Names, into: &mut Column) {
    into.keyed_texts(names.id(), values, Name::key, |name, text| names.write(name, text));
}

/// What is stored for a number that is not known. No number is negative.
const NULL: i64 = -1;

/// Most columns have none in most batches, and are then copied as a whole. This loop has no exit, so it takes many
/// values at once.
fn has_nulls(column: &[i64]) -> bool {
    column.iter().fold(0, |signs, value| signs | value) < 0
}

/// Columns are signed, as most readers expect. No quantity of a run comes near 2^63; if one did, it would be recorded
/// as the largest number.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// An enum whose variants are stored as fixed words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every variant.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// Its name in the records.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl Value for $name {
            const DATA_TYPE: DataType = DataType::Utf8;
            const NULLABLE: bool = false;
            const WORDS: Option<&'static [&'static str]> = Some(&[$($word),*]);
            type Stored = Self;

            fn stored(self) -> Self {
                self
            }

            fn array(column: &[Self], _: &Names) -> ArrayRef {
                Arc::new(StringArray::from_iter_values(column.iter().map(|word| word.as_str())))
            }

            #[cfg(feature = "parquet")]
            fn encode(column: &[Self], _: &Names, into: &mut Column) {
                let words = column.iter().copied().map(Some);
                into.keyed_texts(STATIC, words, |word| word as u64, |word, text| text.push_str(word.as_str()));
            }
        }

        impl Value for Option<$name> {
            const DATA_TYPE: DataType = DataType::Utf8;
            const NULLABLE: bool = true;
            const WORDS: Option<&'static [&'static str]> = <$name>::WORDS;
            type Stored = Self;

            fn stored(self) -> Self {
                self
            }

            fn array(column: &[Self], _: &Names) -> ArrayRef {
                Arc::new(column.iter().map(|word| word.map($name::as_str)).collect::<StringArray>())
            }

            #[cfg(feature = "parquet")]
            fn encode(column: &[Self], _: &Names, into: &mut Column) {
                let words = column.iter().copied();
                into.keyed_texts(STATIC, words, |word| word as u64, |word, text| text.push_str(word.as_str()));
            }
        }
    };
}

words! {
    /// What a TCP sender is doing about congestion, named as Linux names `tcpi_ca_state`.
    FlowState {
        /// Nothing unusual.
        Open = "open",
        /// Duplicate ACKs or SACKs have arrived, but no loss has been concluded yet.
        Disorder = "disorder",
        /// Reducing the window after an ECN echo.
        Cwr = "cwr",
        /// Fast recovery.
        Recovery = "recovery",
        /// Recovering from a retransmission timeout.
        Loss = "loss",
    }
}

words! {
    /// The layer of a port.
    Layer {
        /// The queueing discipline of an interface that is stacked on this one.
        Stacked = "stacked",
        /// The queueing discipline.
        Qdisc = "qdisc",
        /// The driver's transmit ring.
        Ring = "ring",
        /// The wire, after the queue and the ring.
        Wire = "wire",
    }
}

words! {
    /// A direction as a client sees it.
    Direction {
        /// From the server.
        Down = "down",
        /// To the server.
        Up = "up",
    }
}

words! {
    /// How an engine observed a drop or mark.
    Observed {
        /// It saw the packet.
        Packet = "packet",
        /// A sample found that a counter had increased. It is not known to which packet this happened, or when since
        /// the previous sample.
        Counter = "counter",
    }
}

/// Why a packet was dropped, or marked with Congestion Experienced: a word that the queueing discipline chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropReason(&'static str);

impl DropReason {
    /// The reason with this name.
    pub fn new(word: &'static str) -> Self {
        Self(word)
    }

    /// Its name in the records.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl Value for DropReason {
    const DATA_TYPE: DataType = DataType::Utf8;
    const NULLABLE: bool = false;
    type Stored = Self;

    fn stored(self) -> Self {
        self
    }

    fn array(column: &[Self], _: &Names) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(column.iter().map(|reason| reason.as_str())))
    }

    #[cfg(feature = "parquet")]
    fn encode(column: &[Self], _: &Names, into: &mut Column) {
        // Two reasons at the same address differ at most in their lengths.
        let address = |reason: Self| reason.0.as_ptr().addr() as u64 ^ (reason.0.len() as u64) << 56;
        let reasons = column.iter().copied().map(Some);
        into.keyed_texts(STATIC, reasons, address, |reason, text| text.push_str(reason.as_str()));
    }
}

words! {
    /// Half of the path of a flow, as seen from the vantage point.
    Half {
        /// Between the vantage point and the receiver of the data.
        Receiver = "receiver",
        /// Between the vantage point and the sender of the data.
        Sender = "sender",
    }
}

words! {
    /// How a round-trip time was found in a capture.
    Method {
        /// A segment, and the acknowledgement that covers it.
        Acknowledgement = "acknowledgement",
        /// A timestamp, and its first echo (RFC 7323).
        Timestamp = "timestamp",
    }
}

words! {
    /// Why a sender retransmitted a segment.
    RetransmissionKind {
        /// A SYN that was not answered in time.
        Syn = "syn",
        /// Duplicate or selective acknowledgements indicated a loss.
        Fast = "fast",
        /// The retransmission timer, and the retransmissions that follow it.
        Timeout = "timeout",
        /// A tail loss probe (RFC 8985, section 7).
        TailLossProbe = "tail_loss_probe",
        /// The original was lost before the vantage point, which saw only the retransmission.
        Late = "late",
    }
}

words! {
    /// The direction of a packet of a flow.
    FlowDirection {
        /// With the data.
        Data = "data",
        /// With the acknowledgements.
        Acknowledgements = "acknowledgements",
    }
}

words! {
    /// An end of a measured path.
    End {
        /// The one that asked for the measurement.
        Client = "client",
        /// The other one.
        Server = "server",
    }
}

words! {
    /// The answer to a probe with a limited TTL.
    Answer {
        /// ICMP time exceeded, from a router.
        Exceeded = "exceeded",
        /// An echo reply, to a probe that was sent to the hop itself.
        Echo = "echo",
        /// ICMP destination unreachable.
        Unreachable = "unreachable",
        /// The other end answered: the TTL was large enough.
        Destination = "destination",
    }
}

words! {
    /// A queue of the sender itself.
    Stage {
        /// From the application's write to the kernel's schedule timestamp.
        SendBuffer = "send_buffer",
        /// From the schedule timestamp to the software timestamp, which the driver takes.
        Qdisc = "qdisc",
        /// From the software timestamp to the hardware timestamp.
        Driver = "driver",
    }
}
