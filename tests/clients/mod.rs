//! What is particular to single clients.

mod ai_sdk;
mod copilotkit;
mod named_events;
mod old_sdks;
mod openai;
