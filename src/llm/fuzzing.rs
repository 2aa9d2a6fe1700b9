//! The decoders of the providers' answers, for the fuzz targets. Nothing else may use this.

use futures::StreamExt as _;
use reqwest::{Response, Url};

use super::{
    KnownModels, ModelEvent, ProfileOptions,
    providers::{
        anthropic::decoder::{MessageDecoder, PausedContent},
        chat::decoder::ChatDecoder,
        gemini::decoder::GeminiDecoder,
        responses::decoder::ResponsesDecoder,
    },
    transport::{AnswerEvents, DecodeStep, Decoder},
};
use crate::upstream::events::{StreamLimits, provider_events};

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
    let mut decoder = decoder(api);
    let mut output = AnswerEvents::default();
    let mut events = provider_events(response, limits);
    let failure = loop {
        let step = match events.next().await {
            Some(Ok(event)) => {
                decoder.event(event.name.as_deref(), &event.data, &mut output).map_err(|error| format!("{error:?}"))
            }
            Some(Err(_)) | None if decoder.finish(&mut output) => break None,
            Some(Err(error)) => Err(error.to_string()),
            None => Err("the stream ended before the answer did".to_owned()),
        };
        match step {
            Ok(DecodeStep::More) => {}
            Ok(DecodeStep::Complete) if decoder.finish(&mut output) => break None,
            Ok(DecodeStep::Complete) => break Some("the answer ended too early".to_owned()),
            Err(failure) => break Some(failure),
        }
    };
    output.events.into_iter().map(Ok).chain(failure.map(Err)).collect()
}

#[expect(clippy::expect_used, reason = "the callers are fuzz targets, with names of profiles that they choose")]
fn decoder(api: Api) -> Box<dyn Decoder> {
    match api {
        Api::Chat(profile) => {
            let url = Url::parse("http://localhost").expect("a URL");
            let profile =
                KnownModels::default().profile(Some(&ProfileOptions::named(profile)), &url).expect("a known profile");
            Box::new(ChatDecoder::new("m", &profile, false))
        }
        Api::Responses => Box::new(ResponsesDecoder::new("m")),
        Api::Anthropic(true) => Box::new(MessageDecoder::new("m").recording(PausedContent::default())),
        Api::Anthropic(false) => Box::new(MessageDecoder::new("m")),
        Api::Gemini => Box::new(GeminiDecoder::new("m")),
    }
}
