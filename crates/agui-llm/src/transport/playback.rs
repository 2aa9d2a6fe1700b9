//! The playback of a provider's answers from recordings, without requests: for tests of prompts and
//! tools without a key.
//!
//! A request gets the recorded answer to the same conversation. Instructions, tools, parameters and
//! identifiers are not compared, so that they can be changed and tested.

use std::{collections::HashMap, path::Path};

use http::Uri;
use serde_json::{Value, json};

use agui_base::upstream::events::ServerEvent;
use agui_observe::recording::{ProviderExchange, RecordingError, read_folder};

/// The members of requests in which providers take conversations.
const CONVERSATIONS: &[&str] = &["messages", "input", "contents"];
/// Members that differ between equal conversations, or that only the provider can read.
const VARYING: &[&str] = &[
    "id",
    "call_id",
    "tool_call_id",
    "tool_use_id",
    "signature",
    "thoughtSignature",
    "encrypted_content",
    "cache_control",
    "status",
];

/// The recorded answers of a provider.
#[derive(Debug)]
pub struct RecordedExchanges {
    /// The URL of the first exchange, without its scheme: host and path.
    pub url: String,
    exchanges: Vec<ProviderExchange>,
    by_conversation: HashMap<String, usize>,
    /// Positions by the conversation without the results of tools.
    by_calls: HashMap<String, usize>,
}

/// The reason why recorded exchanges cannot be played back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExchangesError {
    /// A recording cannot be read.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// No recording has a whole exchange.
    #[error("the recordings have no whole exchange with a model provider")]
    Empty,
    /// The URL of an exchange belongs to no known API.
    #[error("the URL of an exchange is that of no known API: {0}")]
    UnknownApi(String),
    /// The exchanges are with several APIs.
    #[error(
        "the recordings have exchanges with several APIs: put those of each into a folder of its own"
    )]
    SeveralApis,
}

impl RecordedExchanges {
    /// Reads the exchanges of all recordings in a folder, and returns them with the API that all use. `find_api` finds
    /// an API by the path of a URL. Failed and incomplete exchanges are left out.
    ///
    /// # Errors
    /// A recording cannot be read, or the exchanges do not all use one known API.
    pub fn read<A: PartialEq>(
        folder: &Path,
        find_api: impl Fn(&str) -> Option<A>,
    ) -> Result<(A, Self), ExchangesError> {
        let api_of = |url: &str| {
            let uri: Option<Uri> = format!("http://{url}").parse().ok();
            let api = find_api(uri.as_ref().map_or("", Uri::path));
            api.ok_or_else(|| ExchangesError::UnknownApi(url.to_owned()))
        };
        let exchanges = read_folder(folder)?.into_iter().flat_map(|recording| recording.exchanges);
        let exchanges: Vec<_> = exchanges.filter(ProviderExchange::is_whole).collect();
        let Some(first) = exchanges.first() else { return Err(ExchangesError::Empty) };
        let (api, url) = (api_of(&first.url)?, first.url.clone());
        let (mut by_conversation, mut by_calls) = (HashMap::new(), HashMap::new());
        for (position, exchange) in exchanges.iter().enumerate() {
            if api_of(&exchange.url)? != api {
                return Err(ExchangesError::SeveralApis);
            }
            let request = exchange.request.as_ref().unwrap_or(&Value::Null);
            by_conversation.entry(conversation(request, true)).or_insert(position);
            by_calls.entry(conversation(request, false)).or_insert(position);
        }
        Ok((api, Self { url, exchanges, by_conversation, by_calls }))
    }

    /// Returns the recorded answer to the conversation of a request, or else to the same
    /// conversation with other results of tools.
    pub(super) fn answer(&self, body: &[u8]) -> Option<impl Iterator<Item = ServerEvent>> {
        let request: Value = serde_json::from_slice(body).ok()?;
        let by_calls = || self.by_calls.get(&conversation(&request, false));
        let position =
            *self.by_conversation.get(&conversation(&request, true)).or_else(by_calls)?;
        let events = self.exchanges.get(position)?.events.clone();
        Some(events.into_iter().map(|event| ServerEvent {
            name: event.name,
            id: None,
            data: event.data,
            is_cut_off: false,
        }))
    }
}

/// Returns the compared part of a request's conversation.
fn conversation(request: &Value, with_results: bool) -> String {
    let list = CONVERSATIONS.iter().find_map(|member| request.get(member)?.as_array());
    let is_instruction = |message: &&Value| {
        matches!(message.get("role").and_then(Value::as_str), Some("system" | "developer"))
    };
    let messages = list.into_iter().flatten().filter(|message| !is_instruction(message));
    Value::Array(messages.map(|message| plain(message, with_results)).collect()).to_string()
}

fn plain(value: &Value, with_results: bool) -> Value {
    match value {
        Value::Array(list) => list.iter().map(|item| plain(item, with_results)).collect(),
        Value::Object(object) => {
            let text = |member: &str| object.get(member).and_then(Value::as_str);
            let is_result = text("role") == Some("tool")
                || matches!(text("type"), Some("tool_result" | "function_call_output"))
                || object.contains_key("functionResponse");
            if is_result && !with_results {
                return json!("result");
            }
            let members = object.iter().filter(|(name, _)| !VARYING.contains(&name.as_str()));
            Value::Object(
                members.map(|(name, value)| (name.clone(), plain(value, with_results))).collect(),
            )
        }
        other => other.clone(),
    }
}
