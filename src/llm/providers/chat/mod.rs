//! OpenAI's chat completions, which nearly all other providers also offer.

mod assistant;
mod calls;
mod content;
pub(in crate::llm) mod decoder;
mod messages;
mod reasoning;
pub(super) mod request;
mod tags;
mod text_chunk;
mod thinking;
pub(super) mod warnings;
