//! The decoders of the providers' answers, the bodies of requests and the scaling of images, for the fuzz targets and for tests
//! of properties. Nothing else may use this.

use std::sync::Arc;

use futures::StreamExt as _;
use reqwest::{Response, Url};
use serde_json::Value;

use super::{
    Connection, KnownModels, ModelEvent, ModelOptions, ModelRequest, ProfileOptions,
    context::{image_memory, scale_image},
    history,
    known_models::{MessagesServer, Profile},
    providers::{
        anthropic::{
            self,
            decoder::{MessageDecoder, PausedContent},
        },
        chat::{self, decoder::ChatDecoder},
        gemini::{self, decoder::GeminiDecoder},
        portable_tools::PortableTools,
        responses::{self, decoder::ResponsesDecoder},
    },
    transport::{AnswerEvents, DecodeStep, Decoder},
};
use crate::{
    protocol::Message,
    tools::ToolSpec,
    upstream::events::{StreamLimits, provider_events},
};

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

/// Returns the body of a request with a conversation.
pub fn request(api: Api, model: &str, messages: &[Message], tools: &[ToolSpec]) -> Value {
    let options = ModelOptions::new(model, Connection::default());
    let limits = options.known_models.tool_limits();
    let limits = match api {
        Api::Chat(_) | Api::Responses => &limits.openai,
        Api::Anthropic(_) => &limits.anthropic,
        Api::Gemini => &limits.gemini,
    };
    let mut request = ModelRequest { turns: history::turns(messages), tools: tools.into(), ..ModelRequest::default() };
    PortableTools::new(limits.clone()).prepare(&mut request);
    let sent = match api {
        Api::Chat(name) => chat::request::body(&options, &profile(name), &request),
        Api::Responses => responses::request::body(&options, &request),
        Api::Anthropic(is_official) => {
            anthropic::request::body(&options, &request, &MessagesServer::default(), is_official).sent
        }
        Api::Gemini => gemini::request::body(&options, &request),
    };
    sent.json
}

/// Returns the most memory that scaling an image down takes, by its header.
pub fn image_bytes(file: &[u8]) -> Option<u64> {
    image_memory(file).map(|memory| memory.bytes)
}

/// Scales an image down, whatever memory it takes. Returns whether that succeeds.
pub fn scale(file: &[u8], side: u32) -> bool {
    image_memory(file).is_some_and(|memory| scale_image(file.to_vec(), memory, Some(side), None).is_ok())
}

#[expect(clippy::expect_used, reason = "the callers are tests, with names of profiles that they choose")]
fn profile(name: &str) -> Arc<Profile> {
    let url = Url::parse("http://localhost").expect("a URL");
    KnownModels::default().profile(Some(&ProfileOptions::named(name)), &url).expect("a known profile")
}

fn decoder(api: Api) -> Box<dyn Decoder> {
    match api {
        Api::Chat(name) => Box::new(ChatDecoder::new("m", &profile(name), false, Arc::default())),
        Api::Responses => Box::new(ResponsesDecoder::new("m")),
        Api::Anthropic(true) => Box::new(MessageDecoder::new("m").recording(PausedContent::default())),
        Api::Anthropic(false) => Box::new(MessageDecoder::new("m")),
        Api::Gemini => Box::new(GeminiDecoder::new("m")),
    }
}
