//! An agent that plays a script: for demos, and for front ends that need the same events every time.
//!
//! A script is a TOML file with a list of lines, the tables `[[answer]]`. Each line has conditions
//! (`when`) and actions (`play`). The first line whose conditions hold is played; otherwise the run
//! ends without a message. [`Script::parse`] checks the whole script, so playing it cannot fail; a
//! placeholder that has no value in a conversation is left empty. `config/scripts/demo.toml` is a
//! complete script; this is the format.
//!
//! ```toml
//! description = "…"                 # shown in the agent's capabilities
//! starters = { en = ["weather in Rome"] }  # the same, as `custom.starters`: first messages, by language
//!
//! [[answer]]
//! when.user = '^weather in (?<city>\w+)$'  # a regular expression, case ignored, for the newest user message
//! play = [
//!     { text = ["Let me ", "check"] },                                     # a message, delta by delta
//!     { call = "get_weather", args = { city = "{city}" }, result = "Sunny", within = true },
//!     { text = "It is sunny in {city}." },
//! ]
//! ```
//!
//! **`when`**: all conditions must hold. A line without conditions matches every conversation.
//!
//! | key | holds when |
//! |---|---|
//! | `user` | the expression matches somewhere in the newest user message |
//! | `tool` | the conversation ends with a result of this tool; without this key, the conversation must not end with a result |
//! | `result` | the expression matches somewhere in that result |
//! | `failed` | that result has an `error` (`true`), or has none (`false`) |
//! | `offers` | the request offers this tool |
//! | `replies` | the run replies to interrupts of this name (one, or a list: exactly these; `"*"` is any); without this key, the run must not reply to any |
//! | `approved` | each of these replies is a yes (`true`), or one is not (`false`) |
//! | `deep_thinking` | the request asks for thinking (`true`), or not to think (`false`): `enableDeepThinking` in `forwardedProps`, `enable_deep_thinking` at the named-event endpoints |
//! | `reply` | for each member, as in `reply.size = '^L$'`, the expression matches somewhere in that member of the reply |
//!
//! With `goes_on = true` beside `when`, the next line whose conditions hold is played after this
//! one.
//!
//! **`play`**: actions, in order. Each is a table with one of these keys, and the options named in the same row:
//!
//! | key | plays |
//! |---|---|
//! | `text` | an assistant's message: a text, or a list of deltas |
//! | `think` | a span of reasoning: a text, or a list of deltas; left out if the request asks not to think |
//! | `call` | a tool call: the tool's name, with `args`; `within = true` puts it into the last message; without a `result`, the application or an interrupt replies the call |
//! | `calls` | parallel tool calls, their arguments interleaved: a list of `{ call, args, result }`; also with `within` |
//! | `step` | a step: its name, with `play` for the actions in it |
//! | `state` | a state snapshot: any value |
//! | `patch` | a state delta: a list of JSON Patch operations |
//! | `activity` | an activity: its type, with `content`; a second one of the same type within a line may have `patch` instead |
//! | `custom` | a custom event: its name, with `value` |
//! | `count` | a message that counts from 1 to this number, but no further than `most` (1000) |
//! | `wait_ms` | nothing for this time |
//! | `fail` | the end of the run with an error: its message, with `code` |
//! | `interrupts` | the end of the run with interrupts: a list, see below |
//! | `result_of` | the results of calls of this tool that the run replies to (`"*"`: of all calls without a result), each with the text `approved` or `declined` |
//!
//! `every_ms`, with `text`, `think` and `count`, is the time between two deltas.
//!
//! **Placeholders** are replaced in texts and in the strings of `args`, `state`, `content` and
//! `value`: `{name}` for a named group of `user` or `result`; `{text}` for the newest user message;
//! `{result}`, `{error}`, `{args.name}`, `{result.count}` and `{result.list}` for the tool result
//! that the conversation ends with; the last two need a result that is a JSON array, and `join` is
//! the separator of its items. `{args}` is all arguments, as JSON. `{{` and `}}` are braces.
//!
//! **Interrupts** end a run with questions to a person. The next run brings the replies, and a line
//! with `replies` plays it:
//!
//! ```toml
//! [[answer]]
//! when.user = '^mail (?<who>\w+)$'
//! play = [
//!     { call = "send_email", args = { to = "{who}" } },   # no result yet
//!     { interrupts = [{ call = "send_email", message = "Send an e-mail to {args.to}?" }] },
//! ]
//!
//! [[answer]]
//! when.replies = "send_email"
//! play = [
//!     { result_of = "send_email", approved = "sent to {args.to}", declined = "declined" },
//!     { text = "The e-mail was {results}." },
//! ]
//! ```
//!
//! An interrupt has either a `call` or a `name`. `call` is the tool of a call that this line has
//! played without a `result`: the first interrupt of a tool is about the first such call, the
//! second about the second. Its name is the tool's. Options: `message`, in which `{args.name}` is
//! an argument of the call; `schema`, the JSON Schema of the reply; `expires_in_secs` and
//! `metadata`. The reason of an interrupt is `tool_call` or `input_required`. `interrupts` are the
//! last action of a line, and do not stand in a step.
//!
//! The reply about a call, or to a question whose `schema` has the property `approved`, is a yes if its payload has
//! `approved: true`. If the `schema` also has the property `editedArgs`, an object of that name replaces the arguments.
//! The default `schema` for a call has only `approved`. The reply to any other question is a yes unless it is `null`,
//! `false`, or an object whose `approved` is not `true`. A cancelled or unclear reply is a no.
//!
//! `{reply}` is the payload and `{reply.name}` a member of it; `{args}` and `{args.name}` are the arguments that
//! were decided on: edited, or as proposed. In `result_of` these are the values of each reply; elsewhere they are the
//! values of the first reply that has them, replies about calls first. `{results}` is all results that `result_of` has
//! played in this line, separated by `join`.

mod capabilities;
mod check;
mod error;
mod format;
mod matcher;
mod play;
mod questions;
mod replies;
mod template;

use std::sync::Arc;

use futures::{StreamExt as _, stream};

pub use self::error::ScriptError;
use self::{
    format::{ScriptFile, ScriptLine},
    matcher::Matcher,
    questions::Questions,
};
use agui_agent::{Agent, AgentEffects, EventStream, RunContext, event_stream};
use agui_protocol::{AgentCapabilities, RunAgentInput};

/// An agent that plays a script.
#[derive(Debug, Clone)]
pub struct Script {
    lines: Arc<[ScriptLine]>,
    questions: Arc<Questions>,
    capabilities: AgentCapabilities,
}

impl Script {
    /// Reads and checks a script.
    ///
    /// # Errors
    /// A [`ScriptError`] for the first error in the text.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let file: ScriptFile = toml::from_str(text).map_err(|error| ScriptError {
            message: error.message().to_owned(),
            span: error.span(),
        })?;
        let (lines, questions) = check::check(file.lines)?;
        let capabilities =
            capabilities::declare(file.description, file.starters, &lines, &questions);
        Ok(Self { lines: lines.into(), questions: questions.into(), capabilities })
    }
}

impl Agent for Script {
    fn run(&self, input: RunAgentInput, cx: RunContext) -> EventStream {
        let matcher = Matcher::new(&input, &self.questions);
        let mut played = Vec::new();
        for (index, line) in self.lines.iter().enumerate() {
            let Some(matched) = matcher.matches(line) else { continue };
            tracing::debug!(agent = cx.agent(), line = index + 1, "playing a line of the script");
            // Boxed, because the list has space for four: an idle run would keep 3 KB more.
            played.push(play::play(self.lines.clone(), index, matched, cx.clone()).boxed());
            if !line.goes_on {
                break;
            }
        }
        event_stream(stream::iter(played).flatten())
    }

    fn capabilities(&self) -> AgentCapabilities {
        self.capabilities.clone()
    }

    /// A continued run plays its lines from the start.
    fn can_continue(&self) -> bool {
        true
    }

    fn effects(&self) -> AgentEffects {
        AgentEffects::None
    }
}

#[cfg(test)]
mod tests;
