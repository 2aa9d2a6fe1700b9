//! OpenAI's chat completions, which nearly all other providers also offer.

mod assistant;
mod calls;
pub(in crate::llm) mod decoder;
mod messages;
mod reasoning;
pub(in crate::llm) mod request;
pub(in crate::llm) mod tags;
mod text_chunk;
mod thinking;
mod user_parts;
pub(super) mod warnings;
pub(in crate::llm) mod written_calls;

use super::wire::OPENAI;
use crate::llm::known_models::Profile;

/// Returns the name of the provider, which marks the reasoning of its models. Of servers that no profile is about, only the
/// API is known.
pub(super) fn vendor(profile: &Profile) -> &str {
    if profile.name == "compatible" { OPENAI } else { &profile.name }
}
