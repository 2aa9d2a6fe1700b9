//! Other protocols in front of the same runs.

mod copilotkit;
mod named_events;
