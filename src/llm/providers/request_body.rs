//! A request's body, and what the model does not get.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use http::HeaderMap;
use reqwest::Url;
use serde_json::Value;

use crate::{
    llm::{
        CallTrace, ModelEvent, ModelStream, SkippedAttachment,
        transport::{Decoder, Transport},
    },
    protocol::JsonObject,
};

#[derive(Debug)]
pub(super) struct RequestBody {
    pub(super) json: Value,
    /// The attachments that the request cannot contain.
    pub(super) skipped: Vec<SkippedAttachment>,
}

impl RequestBody {
    /// Sends the request. The skipped attachments are reported before the answer. `headers` are those of this request
    /// alone, and `url` is `None` if all requests have the transport's.
    pub(super) fn send<D: Decoder>(
        self,
        transport: &Arc<Transport>,
        url: Option<Url>,
        headers: HeaderMap,
        trace: CallTrace,
        decoder: impl Fn() -> D + Send + 'static,
    ) -> ModelStream {
        let answer = transport.clone().stream(url, self.json.to_string().into(), headers, trace, decoder);
        with_skipped(self.skipped, answer)
    }
}

/// Sets members of a request's JSON.
pub(super) trait SetMember {
    /// Sets a member, unless the value is absent: `null`, an empty list or an empty object.
    fn set(&mut self, name: &str, value: impl Into<Value>);
}

impl SetMember for JsonObject {
    fn set(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        let is_absent = match &value {
            Value::Null => true,
            Value::Array(list) => list.is_empty(),
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        if !is_absent {
            self.insert(name.to_owned(), value);
        }
    }
}

/// Reports skipped attachments before the answer.
pub(super) fn with_skipped(skipped: Vec<SkippedAttachment>, answer: ModelStream) -> ModelStream {
    if skipped.is_empty() {
        return answer;
    }
    stream::iter(skipped.into_iter().map(|attachment| Ok(ModelEvent::Skipped(attachment)))).chain(answer).boxed()
}
