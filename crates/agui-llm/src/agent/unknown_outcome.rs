//! Calls that had begun when their server was lost, and that must not run twice.

use serde::Deserialize;
use serde_json::json;

use agui_protocol::{
    Interrupt, JsonObject, ToolCallId,
    approval::{shown_arguments, visible},
};
use agui_tools::{
    Question,
    host::{CallReplies, UserReply},
};

/// The result of such a call for the model.
pub(super) const UNKNOWN: &str = "Error: the server was lost while this call ran. Whether it took effect is unknown. \
                                  Check that before you call the tool again.";
const DONE: &str = "The server was lost while this call ran. The user says that it took effect.";
const NOT_DONE: &str =
    "Error: the server was lost while this call ran. The user says that it did not take effect.";
/// The key of the question. Tools have no such keys.
const KEY: &str = "\0outcome";

/// The treatment of a call that must not run twice ([`Repeat::Never`](agui_tools::Repeat::Never), or
/// a person agreed to it), and that may have taken effect when its server was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UnknownOutcome {
    /// The model is told that the outcome is unknown.
    #[default]
    Tell,
    /// A person is asked, by an interrupt with the reason `outcome_unknown`. For a subagent's task, the model is told.
    Ask,
}

#[derive(Deserialize)]
struct OutcomeReply {
    outcome: Outcome,
    #[serde(default)]
    result: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Done,
    NotDone,
    Repeat,
}

/// Returns the question about a call; `None` if the earlier replies are too long for it. `tool` is the name that the model
/// called.
pub(super) fn question(
    call: &ToolCallId,
    tool: &str,
    arguments: &JsonObject,
    replies: &CallReplies,
) -> Option<Interrupt> {
    let (tool_name, shown) = (visible(tool), shown_arguments(arguments));
    let question = Question::new(format!(
        "The server was lost while it called {tool_name} with {shown}. Did the call take effect? Answer done, not_done, or \
         repeat, which calls it again."
    ));
    let schema = json!({
        "type": "object",
        "properties": {
            "outcome": { "enum": ["done", "not_done", "repeat"] },
            "result": { "type": "string", "description": "With `done`: the result for the agent." },
        },
        "required": ["outcome"],
    });
    let question = question.reason("outcome_unknown").response_schema(schema);
    let mut interrupt = replies.interrupt(KEY, question, call).ok()?;
    interrupt.set_call(tool, arguments.clone());
    Some(interrupt)
}

/// Takes the reply out of the replies to a call's questions. Returns the call's result, which is an
/// error if the call did not take effect or that is unknown; `None` if the call runs.
pub(super) fn take_reply(replies: &mut CallReplies) -> Option<Result<String, String>> {
    let reply = match replies.take(KEY)? {
        UserReply::Resolved(reply) => OutcomeReply::deserialize(reply).ok(),
        UserReply::Cancelled => None,
    };
    let Some(OutcomeReply { outcome, result }) = reply else {
        return Some(Err(UNKNOWN.to_owned()));
    };
    match outcome {
        Outcome::Done if result.is_empty() => Some(Ok(DONE.to_owned())),
        Outcome::Done => Some(Ok(result)),
        Outcome::NotDone => Some(Err(NOT_DONE.to_owned())),
        Outcome::Repeat => None,
    }
}
