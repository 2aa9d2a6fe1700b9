//! What of a run is written when: its start, its messages and state, its end.

pub(crate) mod run_report;
pub(crate) mod stored_request;
pub(crate) mod stored_run;
pub(crate) mod title;
pub(crate) mod transcribed_run;
