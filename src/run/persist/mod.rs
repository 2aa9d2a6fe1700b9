//! What of a run is written when: its start, its messages and state, its end.

pub(crate) mod detached;
mod lost_run;
pub(crate) mod stored_request;
pub(crate) mod stored_run;
pub(crate) mod transcribed_run;
