//! Responses that several endpoints give.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::{
    IntoResponses, PartialSchema as _,
    openapi::{Content, RefOr, Response, Schema},
};

use super::schema::component;
use agui_protocol::encode::{PROTO_MEDIA_TYPE, SSE_MEDIA_TYPE};

const JSON: &str = "application/json";

type Responses = BTreeMap<String, RefOr<Response>>;

/// AG-UI events, in both encodings.
pub(crate) enum EventResponse {}

/// The events of a run, or its document.
pub(crate) enum RunResponse {}

/// No content: the client that reconnects has all events.
pub(crate) enum CaughtUp {}

/// A thread, or the events of a run after those that the client has.
pub(crate) enum JoinResponse {}

/// The response of the route to which an inner request goes.
pub(crate) enum InnerResponse {}

impl IntoResponses for EventResponse {
    fn responses() -> Responses {
        BTreeMap::from([response("200", "The events.", events())])
    }
}

impl IntoResponses for RunResponse {
    fn responses() -> Responses {
        let now = "The events, or with `Accept: application/json` what the run has made.";
        let later = "With `Prefer: respond-async`: the run is running, and `Location` names what it will have made.";
        let all = events().into_iter().chain([json("RunDocument")]);
        BTreeMap::from([response("200", now, all), response("202", later, [json("RunDocument")])])
    }
}

impl IntoResponses for CaughtUp {
    fn responses() -> Responses {
        BTreeMap::from([response("204", "The client has all events of an ended run.", [])])
    }
}

impl IntoResponses for JoinResponse {
    fn responses() -> Responses {
        let all = [json("JoinedThread")].into_iter().chain(events());
        let mut responses = CaughtUp::responses();
        responses.extend([response("200", "The thread, or the events of the run.", all)]);
        responses
    }
}

impl IntoResponses for InnerResponse {
    fn responses() -> Responses {
        let description = "The response of the other route.";
        let [events, _] = events();
        let all = [(JSON, Some(Value::schema())), events];
        BTreeMap::from([response("200", description, all), response("204", description, [])])
    }
}

/// A media type, and the schema of its content, if there is one.
type TypedContent = (&'static str, Option<RefOr<Schema>>);

fn events() -> [TypedContent; 2] {
    [(SSE_MEDIA_TYPE, Some(component("Event").into())), (PROTO_MEDIA_TYPE, None)]
}

fn json(name: &str) -> TypedContent {
    (JSON, Some(component(name).into()))
}

fn response(
    status: &str,
    description: &str,
    contents: impl IntoIterator<Item = TypedContent>,
) -> (String, RefOr<Response>) {
    let mut response = Response::new(description);
    let contents = contents.into_iter();
    response.content = contents
        .map(|(media_type, schema)| (media_type.into(), Content::new(schema).into()))
        .collect();
    (status.to_owned(), response.into())
}
