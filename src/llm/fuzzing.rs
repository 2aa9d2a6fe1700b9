//! The decoders of the providers' answers, for the fuzz targets.

use reqwest::Response;

use super::{
    ModelEvent, anthropic, chat, gemini, responses,
    transport::{Decoder, fuzzing::decode},
};
use crate::upstream::events::StreamLimits;

/// An API with a decoder of its own.
#[derive(Debug, Clone, Copy)]
pub enum Api {
    /// Chat completions, with the profile of this name.
    Chat(&'static str),
    /// The Responses API.
    Responses,
    /// The Messages API. `true` if the answer is recorded, because the provider can pause it.
    Anthropic(bool),
    /// The Gemini API.
    Gemini,
}

/// Decodes a response as a request to this API does, up to the first error.
pub async fn answer(api: Api, response: Response, limits: StreamLimits) -> Vec<Result<ModelEvent, String>> {
    let decoder: Box<dyn Decoder> = match api {
        Api::Chat(profile) => chat::fuzzing::decoder(profile),
        Api::Responses => responses::fuzzing::decoder(),
        Api::Anthropic(is_recorded) => anthropic::fuzzing::decoder(is_recorded),
        Api::Gemini => gemini::fuzzing::decoder(),
    };
    decode(decoder, response, limits).await
}
