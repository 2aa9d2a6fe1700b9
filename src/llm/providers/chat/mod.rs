//! OpenAI's chat completions, which nearly all other providers also offer.

mod assistant;
mod calls;
pub(in crate::llm) mod decoder;
mod messages;
mod reasoning;
pub(in crate::llm) mod request;
mod tags;
mod text_chunk;
mod thinking;
mod user_parts;
pub(super) mod warnings;
mod written_calls;
