//! The questions of a script: the interrupts that its runs end with.
//!
//! The run that brings a reply may be in another process, and knows only the interrupt's id. So the id names the
//! question: `int_<toolCallId>` is about a call of the conversation, `int_<random>-<name>` is any other question.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::template::{Template, Values};
use agui_protocol::{
    Interrupt, JsonObject, Metadata, ToolCallId,
    approval::{allows_edits, approval_schema, asks_for_approval},
};

pub(super) const ID_PREFIX: &str = "int_";

/// The kinds of the questions by name, which is the tool for a question about a call.
pub(super) type Questions = HashMap<String, QuestionKind>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionKind {
    /// Approval of a call, whose arguments a person can edit.
    Call { is_editable: bool },
    /// Any other approval: the schema has the property `approved`.
    Review { is_editable: bool },
    /// Any other question.
    Form,
}

impl QuestionKind {
    pub(super) fn is_call(self) -> bool {
        matches!(self, Self::Call { .. })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptQuestion {
    /// The tool whose call needs an approval. A question has either this or a `name`.
    pub(super) call: Option<String>,
    pub(super) name: Option<String>,
    pub(super) message: Option<Template>,
    schema: Option<JsonObject>,
    /// `u32`, so that now and these seconds are always a valid date.
    expires_in_secs: Option<u32>,
    metadata: Option<JsonObject>,
}

/// A call that the line has played without a result.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) tool: String,
    pub(super) id: ToolCallId,
    pub(super) args: Values,
}

impl ScriptQuestion {
    /// Returns the name, or the tool of the call.
    pub(super) fn name(&self) -> &str {
        self.call.as_deref().or(self.name.as_deref()).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> QuestionKind {
        let is_editable = self.schema.as_ref().is_some_and(allows_edits);
        match (&self.call, &self.schema) {
            (Some(_), _) => QuestionKind::Call { is_editable },
            (None, Some(schema)) if asks_for_approval(schema) => {
                QuestionKind::Review { is_editable }
            }
            _ => QuestionKind::Form,
        }
    }

    /// Returns the interrupt. A question about a call takes the first open call of its tool.
    pub(super) fn ask(&self, open: &mut Vec<OpenCall>, values: &Values) -> Option<Interrupt> {
        let call = match &self.call {
            Some(tool) => Some(open.remove(open.iter().position(|call| call.tool == *tool)?)),
            None => None,
        };
        let mut interrupt =
            Interrupt::new(if call.is_some() { "tool_call" } else { "input_required" });
        interrupt.id = match &call {
            Some(call) => format!("{ID_PREFIX}{}", call.id).into(),
            None => format!("{}-{}", interrupt.id, self.name()).into(),
        };
        interrupt.message = self.message.as_ref().map(|message| match &call {
            Some(call) => message.fill(
                &values.iter().chain(&call.args).map(|(k, v)| (k.clone(), v.clone())).collect(),
            ),
            None => message.fill(values),
        });
        // With the schema, the server refuses replies that are neither a yes nor a no.
        interrupt.response_schema =
            self.schema.clone().or_else(|| call.is_some().then(|| approval_schema(None)));
        interrupt.tool_call_id = call.map(|call| call.id);
        interrupt.expires_at = self.expires_in_secs.and_then(expiry);
        interrupt.metadata = self.metadata.clone().map(Metadata::from);
        Some(interrupt)
    }
}

fn expiry(secs: u32) -> Option<String> {
    let at = Timestamp::now().checked_add(SignedDuration::from_secs(secs.into())).ok()?;
    Some(format!("{at:.0}"))
}
