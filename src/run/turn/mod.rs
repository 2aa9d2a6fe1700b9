//! Whose turn it is: the limits of callers, the queue of a thread, its lease, and what becomes of runs that lost theirs.

pub(crate) mod active;
pub(crate) mod admission;
pub(crate) mod maintenance;
pub(crate) mod memory;
pub(crate) mod owner_limit;
pub(crate) mod queue;
pub(crate) mod quota;
pub(crate) mod slot;
pub(crate) mod start_error;
pub(crate) mod stored_bytes;
pub(crate) mod take_over;
pub(crate) mod thread_data;
