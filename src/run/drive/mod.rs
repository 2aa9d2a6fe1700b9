//! The run itself: the agent is polled within its limits, its events are guarded, and messages and state follow them.

pub(crate) mod clock;
pub(crate) mod complete_on_drop;
pub(crate) mod continuation;
pub(crate) mod control;
pub(crate) mod driver;
pub(crate) mod ending;
pub(crate) mod guard;
pub(crate) mod launch;
pub(crate) mod log_replay;
pub(crate) mod progress;
pub(crate) mod transcript;
