//! The turns of runs: the queue of a thread, its running run with the lease, and the
//! [`ThreadCore`](thread_core::ThreadCore) that the runs of a server share.

pub(crate) mod held_lease;
pub(crate) mod live_run;
pub(crate) mod queue;
pub(crate) mod thread_core;
