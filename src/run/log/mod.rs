//! The logs of detached runs.
//!
//! The task of a run adds its events to a [`LiveLog`]. One writer for all runs of the process appends the pending events of
//! many runs to the store with one write ([`writer`]). A [`Follower`] only gets stored events, so it finds them again on any
//! replica and after a crash. Followers read at their own pace, the newest events from memory and older ones from the
//! store. A slow follower does not slow the run.

mod follower;
mod live;
mod writer;

pub use follower::{FollowError, Follower};
pub use live::LogChunk;
pub(super) use live::{LiveLog, LogEnd, LogSink};
pub(super) use writer::LogWriter;
