//! The decoders of the providers' answers, the scans of their texts, the bodies of requests and the scaling of images, for the fuzz
//! targets and for tests of properties. Nothing else may use this.

#[cfg(feature = "image")]
mod images;

use std::sync::Arc;

use futures::StreamExt as _;
use reqwest::{Response, Url};
use serde_json::{Value, json};

#[cfg(feature = "image")]
pub use self::images::{image_bytes, scale};
use super::{
    KnownModels, ModelEvent, ModelOptions, ModelRequest, ProfileOptions, ProviderClient, history,
    known_models::Profile,
    providers::{
        api_entry::SampleServer, chat::written_calls::WrittenCallReader,
        portable_tools::PortableTools,
    },
    transport::{AnswerEvents, DecodeStep},
    written_syntax::SoughtCalls,
};
use agui_base::upstream::events::{StreamLimits, provider_events};
use agui_protocol::Message;
use agui_tools::ToolSpec;

pub use super::providers::{Api, openai::api::OpenAiApi};

/// Decodes a response as a request to this API does, up to the first error. `server` is a profile; `None` is the vendor.
pub async fn answer(
    api: Api,
    server: Option<&str>,
    response: Response,
    limits: StreamLimits,
) -> Vec<Result<ModelEvent, String>> {
    let mut decoder = (api.entry().decoder)(&sample(server));
    let mut output = AnswerEvents::default();
    let mut events = provider_events(response, limits, &"".into());
    let failure = loop {
        let step = match events.next().await {
            Some(Ok(event)) => decoder
                .event(event.name.as_deref(), &event.data, &mut output)
                .map_err(|error| format!("{error:?}")),
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

/// Reads an answer that may end with calls which the model wrote as text, of the tools `look_up` and `now`. Returns the text
/// before them, the rest, and the names and arguments of the calls in the rest.
pub fn written_calls<'p>(
    pieces: impl IntoIterator<Item = &'p str>,
) -> (String, String, Vec<(String, String)>) {
    let tools = ["look_up", "now"].map(|name| ToolSpec::new(name, "", json!({})));
    let mut reader = WrittenCallReader::new(profile("vllm").written_calls.clone(), Arc::new(tools));
    let shown = pieces.into_iter().map(|piece| reader.read(piece)).collect();
    let end = reader.end();
    (shown, end.text, end.calls.into_iter().map(|call| (call.name, call.arguments)).collect())
}

/// Returns whether a call stands in a text.
pub fn stands_in(text: &str, (name, arguments): &(String, String)) -> bool {
    SoughtCalls::new([(name.as_str(), arguments.as_str())]).stand_in(text)
}

/// Returns the body of a request with a conversation. `server` is a profile; `None` is the vendor.
pub fn request(
    api: Api,
    server: Option<&str>,
    model: &str,
    messages: &[Message],
    tools: &[ToolSpec],
) -> Value {
    let options = ModelOptions::new(model, ProviderClient::default());
    let mut request = ModelRequest {
        steps: history::steps(messages),
        tools: tools.into(),
        ..ModelRequest::default()
    };
    let api = api.entry();
    PortableTools::new(options.known_models.tool_limits(api.tool_limits)).prepare(&mut request);
    (api.body)(&options, &request, &sample(server)).json
}

#[expect(
    clippy::expect_used,
    reason = "the callers are tests, with names of profiles that they choose"
)]
pub(crate) fn profile(name: &str) -> Arc<Profile> {
    let url = Url::parse("http://localhost").expect("a URL");
    KnownModels::default()
        .profile(Some(&ProfileOptions::named(name)), &url)
        .expect("a known profile")
}

fn sample(server: Option<&str>) -> SampleServer {
    SampleServer { profile: profile(server.unwrap_or("openai")), is_official: server.is_none() }
}
