//! Recordings of runs: one file of JSON Lines for each run, with the agent's input, its events with their times, and
//! the exchanges with model providers. `docs/recordings.md` describes the format.
//!
//! The driver of a run gives its events to a `LiveRecording`. A thread of its own writes the files
//! ([`RecordingWriter`]), so no run waits for a disk. A recording that cannot be written does not change its run.

mod folder;
mod format;
mod live;
mod options;
mod read;
mod writer;

pub(crate) use folder::name_of_stored_run;
pub(crate) use format::{ExchangeError, ProviderExchange, ProviderReply};
pub use format::{RecordedEvent, Recording, RecordingEnd, RecordingHead};
pub(crate) use format::{line, push_event_line};
pub(crate) use live::{LiveRecording, RecordingStart};
pub use options::RecordOptions;
pub use read::{RecordingError, read_folder};
pub use writer::RecordingWriter;
