//! Questions that a tool asks a person, and the replies.
//!
//! A question is an interrupt: it ends the run, and the next run calls the tool again with the same
//! arguments. A call that asks several questions one after another needs the earlier replies each
//! time. The id of the later interrupt carries them: every client returns it, so any server can
//! continue.
//! An id is `question:KEY:CALL`, or `question:KEY~CARRIED:CALL` with the base64 of a
//! [`CallReplies`]. Its end is bound to the call ([`bound_call`]).

use std::fmt;

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use indexmap::IndexMap;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    call_digest::{bound_call, is_bound_to},
    error::ToolError,
};
use agui_protocol::{
    Interrupt, InterruptId, JsonObject, ResumeEntry, ResumeStatus, ToolCall, ToolCallId,
    own_names::VISIT_URL,
};

const ID_PREFIX: &str = "question:";
/// The reason of a question to open a page.
const AUTHORIZATION: &str = "authorization";

/// Begins the keys of questions that need the person's consent: without it, no call is made.
const NEEDED: &str = "agui-server.needed:";

const MAX_CARRIED_BYTES: usize = 16 * 1024;

/// A question for [`ToolContext::ask`](super::ToolContext::ask). A text is a question, too.
#[derive(Debug, Clone)]
#[must_use]
pub struct Question {
    #[doc(hidden)]
    pub key: Option<String>,
    interrupt: Interrupt,
}

impl Question {
    /// A question with this text and the reason `input_required`.
    pub fn new(message: impl Into<String>) -> Self {
        let interrupt =
            Interrupt { message: Some(message.into()), ..Interrupt::new("input_required") };
        Self { key: None, interrupt }
    }

    /// A question to open a page, such as a login, with the reason `authorization`. The reply
    /// confirms that the person did so.
    #[doc(hidden)]
    pub fn visit(message: impl Into<String>, url: String) -> Self {
        Self::new(message).reason(AUTHORIZATION).metadata(VISIT_URL, url.into())
    }

    /// Names the question within its call, which then need not always ask the same questions in the same order.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Names a question like [`key`](Self::key). If the person declines, the call is never made.
    #[doc(hidden)]
    pub fn needed(self, key: impl fmt::Display) -> Self {
        self.key(format!("{NEEDED}{key}"))
    }

    /// Sets the reason of the interrupt, for front ends that show different questions differently.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.interrupt.reason = reason.into();
        self
    }

    /// Sets a JSON Schema that the reply has to fit, and that front ends can show as a form. Ignored if not an object.
    pub fn response_schema(mut self, schema: Value) -> Self {
        if let Value::Object(schema) = schema {
            self.interrupt.response_schema = Some(schema);
        }
        self
    }

    /// Sets the time until which the question can be replied to, in ISO 8601.
    pub fn expires_at(mut self, time: impl Into<String>) -> Self {
        self.interrupt.expires_at = Some(time.into());
        self
    }

    /// Adds a member to the metadata of the interrupt, for front ends that know such questions.
    pub fn metadata(mut self, name: impl Into<String>, value: Value) -> Self {
        self.interrupt.metadata.get_or_insert_default().insert(name.into(), value);
        self
    }

    pub(crate) fn expecting<T: JsonSchema>(self) -> Self {
        if self.interrupt.response_schema.is_some() {
            self
        } else {
            self.response_schema(schema_of::<T>())
        }
    }

    #[doc(hidden)]
    pub fn text(&self) -> &str {
        self.interrupt.message.as_deref().unwrap_or_default()
    }
}

impl<T: Into<String>> From<T> for Question {
    fn from(message: T) -> Self {
        Self::new(message)
    }
}

/// Returns the JSON Schema of a type, without references: not every provider resolves them.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// The replies to a call's questions so far, and the arguments of its approval if a person edited them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallReplies {
    /// The arguments with which a person approved the call; `None` if the model's are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<JsonObject>,
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    replies: IndexMap<String, UserReply>,
    /// The value that the tool keeps for the next call, in place of the replies so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Value>,
    /// The end of the ids of the call's questions.
    #[serde(skip)]
    bound: String,
}

/// The value that a call keeps for a server that continues its run: the run's mark `kept`.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptValue {
    /// The id of the call that keeps the value.
    pub call: ToolCallId,
    /// The value that replaces the replies so far.
    pub value: Value,
}

/// A person's reply to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserReply {
    /// The payload of the reply; `null` if it has none.
    Resolved(Value),
    /// The person cancelled the question.
    Cancelled,
}

impl UserReply {
    /// True if the person declined. Front ends that only know approvals send `approved`.
    fn is_declined(&self) -> bool {
        match self {
            Self::Resolved(reply) => {
                reply.get("approved").is_some_and(|approved| approved == false)
            }
            Self::Cancelled => true,
        }
    }
}

impl CallReplies {
    /// The replies of a call that has not asked yet. `bound` is the end of the ids of its
    /// questions.
    pub fn none(bound: String, edited: Option<JsonObject>) -> Self {
        Self { edited, bound, ..Self::default() }
    }

    /// Reads the replies to a call's questions from a request; `None` if none of the entries is one.
    pub fn read(call: &ToolCall, entries: &[ResumeEntry]) -> Option<Self> {
        let mut read: Option<Self> = None;
        for entry in entries {
            let Some((key, carried)) = parse_id(&entry.interrupt_id, call) else { continue };
            let all = read.get_or_insert_with(|| Self { bound: carried.bound, ..Self::default() });
            all.edited = all.edited.take().or(carried.edited);
            all.kept = all.kept.take().or(carried.kept);
            all.replies.extend(carried.replies);
            // A decline is final, also beside another reply to the same question.
            if all.get(&key).is_some_and(UserReply::is_declined) {
                continue;
            }
            let reply = match entry.status {
                ResumeStatus::Resolved => {
                    UserReply::Resolved(entry.payload.clone().unwrap_or_default())
                }
                ResumeStatus::Cancelled => UserReply::Cancelled,
            };
            all.replies.insert(key, reply);
        }
        read
    }

    /// Returns the entries that reply to a call's questions.
    pub fn entries<'e>(call: &ToolCall, entries: &'e [ResumeEntry]) -> Vec<&'e ResumeEntry> {
        entries.iter().filter(|entry| parse_id(&entry.interrupt_id, call).is_some()).collect()
    }

    /// Returns whether this MCP server (or none) carried the call out when the person was asked.
    pub fn are_of(&self, call: &ToolCall, server: Option<&str>) -> bool {
        self.bound == bound_call(call, server)
    }

    /// Removes and returns the reply to the question with a key; `None` if it has no reply.
    pub fn take(&mut self, key: &str) -> Option<UserReply> {
        self.replies.shift_remove(key)
    }

    /// Returns whether the person has declined a question that needs consent, such as a login.
    pub fn lack_consent(&self) -> bool {
        self.replies.iter().any(|(key, reply)| key.starts_with(NEEDED) && reply.is_declined())
    }

    /// Returns replies that carry a value for the next call.
    pub fn keeping(&self, kept: Value) -> Self {
        Self {
            edited: self.edited.clone(),
            kept: Some(kept),
            bound: self.bound.clone(),
            ..Self::default()
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&UserReply> {
        self.replies.get(key)
    }

    /// Fails if the earlier replies are longer than [`MAX_CARRIED_BYTES`].
    pub fn interrupt(
        &self,
        key: &str,
        question: Question,
        call: &ToolCallId,
    ) -> Result<Interrupt, ToolError> {
        let (key, bound) = (utf8_percent_encode(key, NON_ALPHANUMERIC), &self.bound);
        let id: InterruptId = if self.edited.is_none()
            && self.replies.is_empty()
            && self.kept.is_none()
        {
            format!("{ID_PREFIX}{key}:{bound}").into()
        } else {
            let carried = serde_json::to_vec(self)?;
            if carried.len() > MAX_CARRIED_BYTES {
                let limit = format!(
                    "the earlier answers and arguments are longer than {MAX_CARRIED_BYTES} bytes"
                );
                return Err(ToolError::new(format!("another question cannot be asked: {limit}")));
            }
            format!("{ID_PREFIX}{key}~{}:{bound}", BASE64_URL_SAFE_NO_PAD.encode(carried)).into()
        };
        Ok(Interrupt { id, tool_call_id: Some(call.clone()), ..question.interrupt })
    }
}

fn parse_id(id: &InterruptId, call: &ToolCall) -> Option<(String, CallReplies)> {
    let (token, bound) = id
        .strip_prefix(ID_PREFIX)?
        .split_once(':')
        .filter(|(_, bound)| is_bound_to(call, bound))?;
    let (key, carried) = match token.split_once('~') {
        Some((key, carried)) => {
            (key, serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(carried).ok()?).ok()?)
        }
        None => (token, CallReplies::default()),
    };
    let carried = CallReplies { bound: bound.to_owned(), ..carried };
    Some((percent_decode_str(key).decode_utf8().ok()?.into_owned(), carried))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resolved(id: &InterruptId, payload: Value) -> ResumeEntry {
        let (interrupt_id, status) = (id.clone(), ResumeStatus::Resolved);
        ResumeEntry { interrupt_id, status, payload: Some(payload), metadata: None }
    }

    #[test]
    fn a_later_question_carries_the_earlier_answers() {
        let call = ToolCall::new("c:1~x", "order", "{}");
        let first = CallReplies::none(bound_call(&call, None), None)
            .interrupt("1", "Size?".into(), &call.id)
            .unwrap();
        assert_eq!(first.id.as_str(), format!("question:1:{}", bound_call(&call, None)));
        let known = CallReplies::read(&call, &[resolved(&first.id, json!("L"))]).unwrap();
        let second = known.interrupt("a:b~ü", "Colour?".into(), &call.id).unwrap();
        let cancelled =
            ResumeEntry { status: ResumeStatus::Cancelled, ..resolved(&second.id, json!(1)) };
        let known = CallReplies::read(&call, &[cancelled]).unwrap();
        assert_eq!(known.get("1"), Some(&UserReply::Resolved(json!("L"))));
        assert_eq!(known.get("a:b~ü"), Some(&UserReply::Cancelled));
    }

    #[test]
    fn ids_of_other_calls_and_damaged_ids_are_not_read() {
        let call = ToolCall::new("c", "order", "{}");
        let digest = |arguments: &str| {
            bound_call(&ToolCall::new("c", "order", arguments), None).replace(":c", "")
        };
        let (digest, other) = (digest("{}"), digest(r#"{"n":2}"#));
        for id in ["1:D:d", "1~!:D:c", "1", "1:c", "%ff:D:c", "1:D:c:c", "1:O:c", "1::c"] {
            let id = format!("question:{}", id.replace('D', &digest).replace('O', &other));
            assert_eq!(
                CallReplies::read(&call, &[resolved(&id.as_str().into(), json!(1))]),
                None,
                "{id}"
            );
        }
        let id = format!("question:1:{digest}:c");
        assert!(CallReplies::read(&call, &[resolved(&id.as_str().into(), json!(1))]).is_some());
    }

    #[test]
    fn what_an_id_carries_is_bounded() {
        let call = ToolCall::new("c", "order", "{}");
        let long = json!("x".repeat(MAX_CARRIED_BYTES));
        let first = CallReplies::none(bound_call(&call, None), None)
            .interrupt("1", "Size?".into(), &call.id)
            .unwrap();
        let known = CallReplies::read(&call, &[resolved(&first.id, long)]).unwrap();
        assert!(
            known
                .interrupt("2", "?".into(), &call.id)
                .unwrap_err()
                .message()
                .contains("cannot be asked")
        );
    }
}
