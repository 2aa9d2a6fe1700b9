//! The schema of the events. It is written by hand, because the encoder writes most events without a type of their own.

use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Schema,
        schema::{AnyOfBuilder, ObjectBuilder, Type},
    },
};

use super::HitlRequest;
use crate::http::openapi::schema::{component, typed};

/// The data of an event. Its name is in the line `event:`.
pub(super) enum NamedEvent {}

/// The events, with the members of their data: those that are always present, and further ones. All are texts.
const EVENTS: [(&str, &[&str], &[&str]); 12] = [
    ("message", &["content", "thread_id", "agent"], &[]),
    ("status", &["type", "message"], &["thread_id", "run_id"]),
    ("error", &["type", "message"], &["thread_id"]),
    ("tool_call_start", &["toolCallId", "toolCallName", "thread_id"], &[]),
    ("tool_call_args", &["toolCallId", "delta"], &[]),
    ("tool_call_end", &["toolCallId"], &[]),
    ("tool_result", &["toolCallId", "content", "role"], &[]),
    ("reasoning_start", &["messageId"], &[]),
    ("reasoning_message_start", &["messageId", "role"], &[]),
    ("reasoning_message_content", &["messageId", "delta"], &[]),
    ("reasoning_message_end", &["messageId"], &[]),
    ("reasoning_end", &["messageId"], &[]),
];

impl PartialSchema for NamedEvent {
    fn schema() -> RefOr<Schema> {
        let text = || typed(Type::String);
        let events = EVENTS.into_iter().map(|(name, required, optional)| {
            let data = ObjectBuilder::new().title(Some(name));
            let data = required
                .iter()
                .fold(data, |data, member| data.property(*member, text()).required(*member));
            optional.iter().fold(data, |data, member| data.property(*member, text()))
        });
        // Some events have members of others, so a stream's data fits more than one.
        events
            .fold(AnyOfBuilder::new(), AnyOfBuilder::item)
            .item(component(&HitlRequest::name()))
            .into()
    }
}

impl ToSchema for NamedEvent {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((HitlRequest::name().into_owned(), HitlRequest::schema()));
        HitlRequest::schemas(schemas);
    }
}
