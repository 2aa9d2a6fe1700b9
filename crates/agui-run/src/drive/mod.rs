//! The run itself: the agent is polled within its limits, its events are guarded, and messages and state follow them.

pub(crate) mod agent_with_files;
pub(crate) mod clock;
pub(crate) mod driver;
pub(crate) mod ending;
pub(crate) mod guard;
pub(crate) mod progress;
pub(crate) mod run_report;
mod test_run;
pub(crate) mod transcript;
