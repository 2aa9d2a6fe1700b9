//! An agent that forwards runs to another AG-UI endpoint, in whatever language that is written.
//!
//! The endpoint gets each run with the stored messages and state, and its events become the run's own. This server adds
//! authentication, stored threads, reconnection, limits, and a stream whose order is always legal.
//! `docs/protocol.md` lists the error codes of its runs.

mod agent;
mod left_out;
mod mender;
mod on_interrupt;
mod options;
mod reader;
mod request;
mod resume;
mod split_texts;
mod withdrawn;

pub use self::{agent::Remote, options::RemoteOptions};
