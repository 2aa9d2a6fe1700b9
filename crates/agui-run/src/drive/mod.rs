//! The run itself: polls the agent within its limits, guards its events, and applies them to
//! messages and state.

pub(crate) mod agent_with_files;
pub(crate) mod clock;
pub(crate) mod driver;
pub(crate) mod ending;
pub(crate) mod guard;
pub(crate) mod progress;
pub(crate) mod recap;
pub(crate) mod run_report;
mod test_run;
pub(crate) mod transcript;
