//! The providers' APIs. A new API has a module with an implementation of [`Model`](super::Model) on
//! `transport` and its [`ApiEntry`], and a value of [`Api`].

pub(super) mod anthropic;
pub(super) mod api_entry;
mod api_host;
pub(super) mod attachments;
pub(super) mod chat;
pub(super) mod gemini;
pub(super) mod openai;
mod openai_effort;
pub(super) mod portable_tools;
pub(super) mod responses;
mod strict_schema;
mod tool_schema;
mod warning_list;
pub(super) mod wire;

use self::{api_entry::ApiEntry, openai::api::OpenAiApi};

/// An API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Chat completions, or OpenAI's Responses API.
    OpenAi(OpenAiApi),
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's Gemini API.
    Gemini,
}

impl Api {
    /// All values.
    pub const ALL: [Self; 4] = [
        Self::OpenAi(OpenAiApi::Chat),
        Self::OpenAi(OpenAiApi::Responses),
        Self::Anthropic,
        Self::Gemini,
    ];

    /// Returns the entry of the API.
    pub fn entry(self) -> &'static ApiEntry {
        match self {
            Self::OpenAi(OpenAiApi::Chat) => &openai::CHAT,
            Self::OpenAi(OpenAiApi::Responses) => &openai::RESPONSES,
            Self::Anthropic => &anthropic::MESSAGES,
            Self::Gemini => &gemini::GENERATE_CONTENT,
        }
    }
}
