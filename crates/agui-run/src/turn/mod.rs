//! Whose turn it is: the queue of a thread, its running run with the lease, and what the runs on the threads of a server share.

pub(crate) mod active;
pub(crate) mod held_lease;
pub(crate) mod queue;
pub(crate) mod thread_runs;
