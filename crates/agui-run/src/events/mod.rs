//! Events beside a run's own stream: changes of threads, and copies of the events of runs for
//! recordings and inspectors.

pub(crate) mod debug_events;
pub(crate) mod owner_hub;
pub(crate) mod tap;
pub(crate) mod thread_event_hub;
