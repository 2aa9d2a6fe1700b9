//! What the other crates of the workspace need of this one. Not a part of the interface: it changes without notice.

pub use crate::agent::{StatePrediction, SystemPrompt};
pub use crate::providers::openai::api::OpenAiApi;
pub use crate::transport::{CloudCredentials, RecordedApi, RecordedExchanges};
