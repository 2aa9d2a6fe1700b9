//! OpenAI's chat completions, which nearly all other providers also offer.

mod assistant;
mod calls;
pub(crate) mod decoder;
mod messages;
mod reasoning;
pub(crate) mod request;
pub(crate) mod tags;
mod text_chunk;
mod thinking;
mod user_parts;
pub(super) mod warnings;
pub(crate) mod written_calls;

use super::wire::OPENAI;
use crate::known_models::Profile;

/// Returns the name of the provider, which marks the reasoning of its models. For a server without
/// a profile it is the API's name.
pub(super) fn vendor(profile: &Profile) -> &str {
    if profile.name == "compatible" { OPENAI } else { &profile.name }
}
