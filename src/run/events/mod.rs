//! Events beside those of a run's own stream: changes of threads, and the events of runs for an inspector.

pub(crate) mod debug_events;
pub(crate) mod owner_hub;
pub(crate) mod thread_event_hub;
