//! The logs of detached runs: a [`LiveLog`] for each run, one [`writer`] for all runs of the
//! process, [`Follower`]s, and one reader of the logs of other processes that are [`followed`]
//! here.
//!
//! A follower only gets stored events, so it finds them again on any replica and after a crash. It
//! reads at its own pace, the newest events from memory and older ones from the store, so a slow
//! follower does not slow the run.

mod followed;
mod follower;
pub(crate) mod live;
pub(crate) mod mark;
pub(crate) mod restored_run;
pub(crate) mod retracted;
mod writer;

pub(crate) use followed::FollowedLogs;
pub(crate) use follower::QueueEnd;
pub use follower::{FollowError, Follower};
pub use live::{LiveLog, LogEnd};
pub(crate) use writer::LogWriter;
