//! The limits of clients: runs, memory and stored bytes, of each owner and in total.

pub(crate) mod lost_run_backoff;
pub(crate) mod memory;
pub(crate) mod quota;
pub(crate) mod run_permit;
pub(crate) mod start_error;
pub(crate) mod stored_bytes;
