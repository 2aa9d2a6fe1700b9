//! Events beside those of a run's own stream: changes of threads, and what taps the events of runs: recordings, and an inspector.

pub(crate) mod debug_events;
pub(crate) mod owner_hub;
pub(crate) mod tap;
pub(crate) mod thread_event_hub;
