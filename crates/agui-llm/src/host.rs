//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

pub use crate::agent::{AgentOptions, StatePrediction, SystemPrompt};
pub use crate::providers::{Api, api_entry::KnownProvider, openai::api::OpenAiApi};
pub use crate::transport::{CloudCredentials, RecordedExchanges};
