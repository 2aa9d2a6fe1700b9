//! Responses that several endpoints give.

use std::collections::BTreeMap;

use utoipa::{
    IntoResponses,
    openapi::{
        Content, RefOr, Response, ResponseBuilder, Schema,
        schema::{ObjectBuilder, SchemaType},
    },
};

use super::schema::component;
use crate::protocol::encode::{PROTO_MEDIA_TYPE, SSE_MEDIA_TYPE};

const JSON: &str = "application/json";

/// AG-UI events, in both encodings.
pub(crate) enum EventResponse {}

/// The events of a run, or what it has made.
pub(crate) enum RunResponse {}

/// A client that continues a run has all events.
pub(crate) enum CaughtUp {}

/// A thread, or the events of a run after those that the client has.
pub(crate) enum JoinResponse {}

/// What the route of an inner request responds.
pub(crate) enum InnerResponse {}

impl IntoResponses for EventResponse {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        response("200", "The events.", [(SSE_MEDIA_TYPE, Some(component("Event").into())), (PROTO_MEDIA_TYPE, None)])
    }
}

impl IntoResponses for RunResponse {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let document = || (JSON, Some(component("RunDocument").into()));
        let events = [(SSE_MEDIA_TYPE, Some(component("Event").into())), (PROTO_MEDIA_TYPE, None)];
        let mut responses = response(
            "200",
            "The events, or with `Accept: application/json` what the run has made.",
            events.into_iter().chain([document()]),
        );
        let later = "With `Prefer: respond-async`: the run is running, and `Location` names what it will have made.";
        responses.extend(response("202", later, [document()]));
        responses
    }
}

impl IntoResponses for CaughtUp {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        response("204", "The client has all events of an ended run.", [])
    }
}

impl IntoResponses for JoinResponse {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let thread = (JSON, Some(component("JoinedThread").into()));
        let events = [(SSE_MEDIA_TYPE, Some(component("Event").into())), (PROTO_MEDIA_TYPE, None)];
        let mut responses =
            response("200", "The thread, or the events of the run.", [thread].into_iter().chain(events));
        responses.extend(CaughtUp::responses());
        responses
    }
}

impl IntoResponses for InnerResponse {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let description = "The response of the other route.";
        let contents = [
            (JSON, Some(ObjectBuilder::new().schema_type(SchemaType::AnyValue).into())),
            (SSE_MEDIA_TYPE, Some(component("Event").into())),
        ];
        let mut responses = response("200", description, contents);
        responses.extend(response("204", description, []));
        responses
    }
}

fn response(
    status: &str,
    description: &str,
    contents: impl IntoIterator<Item = (&'static str, Option<RefOr<Schema>>)>,
) -> BTreeMap<String, RefOr<Response>> {
    let response = ResponseBuilder::new().description(description);
    let response = contents
        .into_iter()
        .fold(response, |response, (media_type, schema)| response.content(media_type, Content::new(schema)));
    BTreeMap::from([(status.to_owned(), response.build().into())])
}
