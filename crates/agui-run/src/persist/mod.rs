//! Stores a run: its request, its messages and state, its end.

pub(crate) mod agent_journal;
pub(crate) mod detached;
mod lost_run;
mod polled_run;
mod promoted_run;
mod run_result;
pub(crate) mod stored_request;
pub(crate) mod stored_run;
mod titles;
pub(crate) mod transcribed_run;
