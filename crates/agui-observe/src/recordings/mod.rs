//! Writes [recordings](crate::recording) of runs.
//!
//! The driver of a run gives its events to a `LiveRecording`. A thread of its own writes the files
//! ([`RecordingWriter`]), so no run waits for a disk. A recording that cannot be written does not change its run.

mod folder;
mod live;
mod options;
mod writer;

pub use folder::name_of_stored_run;
pub use live::LiveRecording;
pub use options::RecordOptions;
pub use writer::RecordingWriter;
