//! What clients may take: runs, memory and stored bytes, of each owner and in all.

pub(crate) mod memory;
pub(crate) mod owner_limit;
pub(crate) mod quota;
pub(crate) mod slot;
pub(crate) mod start_error;
pub(crate) mod stored_bytes;
