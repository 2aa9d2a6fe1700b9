//! An agent that plays recordings, for tests of front ends without a model. See `docs/recordings.md`.
//!
//! A run gets the recording with the same conversation, event by event at the recorded pace. A
//! [`ReplayFault`](options::ReplayFault) breaks the run.

mod agent;
mod conversation;
mod options;

pub use agent::Replay;
pub use options::ReplayOptions;
