//! What clients may take: runs, memory and stored bytes, of each owner and in all.

pub(crate) mod memory;
pub(crate) mod quota;
pub(crate) mod recovery_backoff;
pub(crate) mod run_permit;
pub(crate) mod start_error;
pub(crate) mod stored_bytes;
