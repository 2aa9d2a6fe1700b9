//! The log of a run that outlives its connection.
//!
//! A task polls the run and puts its events into the run's [`LiveLog`]; one writer for all runs of the process appends
//! what has gathered to the store, many runs at a time ([`writer`]). Only events that are stored are shown: a
//! [`Follower`] that has seen an event finds it again on any replica and after a crash. Followers read at their own pace,
//! from the newest events in memory or from the store, and none of them can hold up the run.

mod chunk;
mod follower;
mod live;
mod writer;

pub use chunk::LogChunk;
pub use follower::{FollowError, Follower};
pub(super) use live::{LiveLog, LogEnd, LogSink};
pub(super) use writer::LogWriter;
