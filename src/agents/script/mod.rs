//! An agent that is played from a file.
//!
//! A script is TOML: a list of replies, each with the conversations it answers and what it plays. The
//! first reply that fits is played. `config/scripts/demo.toml` is a whole one; this is the format.
//!
//! ```toml
//! description = "…"                 # what the agent says about itself
//!
//! [[reply]]
//! when.user = '^weather in (?<city>\w+)$'  # a regular expression, case ignored, for the newest user message
//! play = [
//!     { text = ["Let me ", "check"] },                                     # a message, delta by delta
//!     { call = "get_weather", args = { city = "{city}" }, result = "Sunny", within = true },
//!     { text = "It is sunny in {city}." },
//! ]
//! ```
//!
//! **`when`**: everything named must hold. A reply without it fits always.
//!
//! | key | holds when |
//! |---|---|
//! | `user` | the expression is found in the newest user message |
//! | `tool` | the conversation ends with a result of this tool; without it, it must not end with a result |
//! | `result` | the expression is found in that result |
//! | `failed` | that result has an `error` (`true`), or has none (`false`) |
//! | `offers` | the request offers this tool (one, or a list of which all are needed) |
//! | `answers` | the run answers interrupts of this name (one, or a list: of all these and no others; `"*"` is any); without it, the run must not answer any |
//! | `approved` | each of these answers is a yes (`true`), or one is not (`false`) |
//! | `answer` | for each member that it names, as in `answer.size = '^L$'`, the expression is found in that member of the answer |
//!
//! **`play`**: actions, in order. Each is a table with one of these keys, and perhaps others:
//!
//! | key | plays |
//! |---|---|
//! | `text` | an assistant's message: a text, or a list of deltas |
//! | `think` | a span of reasoning: a text, or a list of deltas |
//! | `call` | a tool call: the tool's name, with `args`; `within = true` puts it into the last message; with `result` the call is answered, without it is left to the application |
//! | `calls` | several tool calls at once, their arguments interleaved: a list of `{ call, args, result }`; also with `within` |
//! | `step` | a step: its name, with `play` for what happens in it |
//! | `state` | a state snapshot: any value |
//! | `patch` | a state delta: a list of JSON Patch operations |
//! | `activity` | an activity: its type, with `content`; a second one of the same type within a reply may have `patch` instead |
//! | `custom` | a custom event: its name, with `value` |
//! | `count` | a message that counts from 1 to this number, with `most` for the largest number it goes to |
//! | `wait_ms` | nothing, for a while |
//! | `fail` | the end of the run with an error: its message, with `code` |
//! | `interrupts` | the end of the run with questions to people: a list, see below |
//! | `result_of` | the results of answered calls of this tool (`"*"`: of all that have none yet), each with the text `approved` or `declined` |
//!
//! `every_ms`, with `text`, `think` and `count`, is the time between two deltas.
//!
//! **Placeholders** stand in texts and in the strings of `args`, `state`, `content` and `value`: `{name}` for a named group of `user` or
//! `result`; `{text}` for the newest user message; `{result}`, `{error}`, `{args.name}`,
//! `{result.count}` and `{result.list}` for the tool result that is answered, the last two for one that
//! is a JSON array, whose items `join` puts between. `{args}` is all arguments, as JSON. `{{` and `}}` are braces.
//!
//! **Interrupts** end a run to ask people something. The next run brings the answers, and is answered by a reply
//! with `answers`:
//!
//! ```toml
//! [[reply]]
//! when.user = '^mail (?<who>\w+)$'
//! play = [
//!     { call = "send_email", args = { to = "{who}" } },   # no result yet
//!     { interrupts = [{ call = "send_email", message = "Send an e-mail to {args.to}?" }] },
//! ]
//!
//! [[reply]]
//! when.answers = "send_email"
//! play = [
//!     { result_of = "send_email", approved = "sent to {args.to}", declined = "declined" },
//!     { text = "The e-mail was {results}." },
//! ]
//! ```
//!
//! An interrupt has a `call`, the tool of a call that this reply has played without a `result` (the first
//! interrupt of a tool is about its first such call, the second about the second), or a `name` of its own. It
//! may have a `message`, where `{args.name}` stands for the call's arguments; a `schema`, the JSON Schema of the
//! answer; `expires_in_secs`; `metadata`; and a `reason` other than `tool_call`, which it is for a call, or
//! `input_required`. The name of an interrupt about a call is the tool's.
//!
//! The answer to a call is a yes if its payload has `approved: true`. If the `schema` has the property
//! `editedArgs`, an object of that name replaces the arguments. Without a `schema`, the server asks for
//! `approved` alone. The answer to anything else is a yes unless it is `null`, `false`, or an object whose
//! `approved` is not `true`. What was cancelled, or is unclear, is a no.
//!
//! `{answer}` is the payload and `{answer.name}` a member of it; `{args}` and `{args.name}` are the arguments
//! that were decided on: edited, or as they were proposed. In `result_of` they are those of each answer,
//! elsewhere those of the first answer that has them, calls before others. `{results}` is what `result_of` has
//! played so far, with `join` between.
//!
//! All of it is checked when the script is read.

mod answers;
mod capabilities;
mod compile;
mod conversation;
mod format;
mod play;
mod questions;
mod template;

use std::{ops::Range, sync::Arc};

use self::{compile::Reply, conversation::Conversation, questions::Questions};
use crate::{
    agent::{Agent, EventStream, RunContext, event_stream},
    protocol::{AgentCapabilities, RunAgentInput},
};

/// An agent that is played from a file. See the [module](self) for the format.
#[derive(Debug, Clone)]
pub struct Script {
    replies: Arc<[Reply]>,
    questions: Arc<Questions>,
    capabilities: AgentCapabilities,
}

/// What is wrong with a script, and where in its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    message: String,
    span: Option<Range<usize>>,
}

impl ScriptError {
    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The bytes of the script's text it is about, where that is known.
    pub fn span(&self) -> Option<Range<usize>> {
        self.span.clone()
    }
}

impl Script {
    /// Reads and checks a script.
    ///
    /// # Errors
    /// A [`ScriptError`] for the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: format::Script = toml::from_str(text)
            .map_err(|error| ScriptError { message: error.message().to_owned(), span: error.span() })?;
        compile::compile(script)
    }
}

impl Agent for Script {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        let conversation = Conversation::of(&input, &self.questions);
        let fitting = self
            .replies
            .iter()
            .enumerate()
            .find_map(|(index, reply)| conversation.fits(&reply.when).map(|fit| (index, fit)));
        let Some((index, fit)) = fitting else {
            return crate::agent::events([]);
        };
        tracing::debug!(agent = cx.agent(), reply = index + 1, "playing a reply of the script");
        event_stream(play::play(self.replies.clone(), index, fit, cx))
    }

    fn capabilities(&self) -> AgentCapabilities {
        self.capabilities.clone()
    }
}

#[cfg(test)]
mod tests;
