//! What is particular to single clients.

mod copilotkit;
mod named_events;
mod old_sdks;
mod openai;
