//! Whose turn it is: the queue of a thread, its running run, and what the runs on the threads of a server share.

pub(crate) mod active;
pub(crate) mod queue;
pub(crate) mod thread_data;
mod thread_events;
pub(crate) mod thread_runs;
