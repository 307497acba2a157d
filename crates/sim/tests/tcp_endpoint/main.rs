//! Two TCP endpoints against each other, over paths that delay, lose, reorder, duplicate and mark.

mod acknowledgements;
mod congestion;
mod counters;
mod handshake;
mod journal;
mod net;
mod offload;
mod own_host;
mod pacing;
mod pipe;
mod random;
mod receive_window;
mod recovery;
mod send_buffer;
mod undo;
mod witness;
