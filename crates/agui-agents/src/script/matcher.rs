//! Matches the conditions of a line against a conversation.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    format::{Expression, ScriptLine, When},
    questions::Questions,
    replies::{Reply, add_args, replies},
    template::{Values, plain},
};
use agui_protocol::{Message, RunAgentInput, ToolMessage};

/// The parts of a run's input that conditions read.
pub(super) struct Matcher<'a> {
    input: &'a RunAgentInput,
    user: Cow<'a, str>,
    /// The tool result that the conversation ends with.
    last_result: Option<LastResult<'a>>,
    replies: Vec<Reply>,
    /// The request's own switch.
    deep_thinking: Option<bool>,
}

#[derive(Clone, Copy)]
struct LastResult<'a> {
    result: &'a ToolMessage,
    name: &'a str,
    args: &'a str,
}

#[derive(Debug)]
pub(super) struct Match {
    /// The values of all placeholders. A value of a reply is from the first reply that has it.
    pub(super) values: Values,
    /// The values without the replies' values, for actions that are played once for each reply.
    pub(super) common: Values,
    pub(super) replies: Vec<Reply>,
    /// True if the request asks not to think.
    pub(super) without_thinking: bool,
}

impl<'a> Matcher<'a> {
    pub(super) fn new(input: &'a RunAgentInput, questions: &Questions) -> Self {
        let replies = replies(input, questions);
        let last = input
            .messages
            .iter()
            .rev()
            .find(|m| !matches!(m, Message::Activity(_) | Message::Reasoning(_)));
        let last_result = match last {
            // A run that replies to interrupts is about the replies, not about the last tool result.
            Some(Message::Tool(result)) if replies.is_empty() => {
                let mut calls = input.messages.iter().rev().flat_map(Message::tool_calls);
                let call = calls.find(|call| call.id == result.tool_call_id);
                let (name, args) = call
                    .map_or(("", "{}"), |call| (&*call.function.name, &*call.function.arguments));
                Some(LastResult { result, name, args })
            }
            _ => None,
        };
        let (user, deep_thinking) =
            (input.last_user_text().unwrap_or_default(), input.deep_thinking());
        Self { input, user, last_result, replies, deep_thinking }
    }

    pub(super) fn matches(&self, ScriptLine { when, join, .. }: &ScriptLine) -> Option<Match> {
        let is_about_result = match (&when.tool, self.last_result) {
            (Some(tool), Some(last)) => tool == last.name || tool == "*",
            (tool, last) => tool.is_none() && last.is_none(),
        };
        let failed = self.last_result.is_some_and(|last| last.result.error.is_some());
        let holds = is_about_result
            && self.replies_match(when)
            && when.failed.is_none_or(|wanted| wanted == failed)
            && when.deep_thinking.is_none_or(|wanted| self.deep_thinking == Some(wanted))
            && when.offers.as_ref().is_none_or(|tool| self.input.tool(tool).is_some());
        if !holds {
            return None;
        }
        let mut values = self.last_result.map(|last| last.values(join)).unwrap_or_default();
        let result = values.get("result").cloned().unwrap_or_default();
        let texts = [(&when.user, &*self.user), (&when.result, &*result)];
        let mut wanted: Vec<_> =
            texts.into_iter().filter_map(|(wanted, text)| Some((wanted.as_ref()?, text))).collect();
        for (member, expression) in &when.reply {
            let member = format!("reply.{member}");
            wanted.push((
                expression,
                self.replies.iter().find_map(|reply| reply.values.get(&member))?,
            ));
        }
        for (Expression(regex), text) in wanted {
            let groups = regex.captures(text)?;
            for name in regex.capture_names().flatten() {
                values.insert(
                    name.to_owned(),
                    groups.name(name).map_or("", |group| group.as_str()).to_owned(),
                );
            }
        }
        values.insert("text".to_owned(), self.user.to_string());
        let common = values.clone();
        for reply in self.replies.iter().rev() {
            values.extend(reply.values.clone());
        }
        let without_thinking = self.deep_thinking == Some(false);
        Some(Match { values, common, replies: self.replies.clone(), without_thinking })
    }

    /// Returns whether the run replies to exactly the interrupts that `when.replies` names.
    fn replies_match(&self, when: &When) -> bool {
        let is_replied =
            |name: &String| name == "*" || self.replies.iter().any(|reply| reply.name == *name);
        let takes = |name: &String| when.replies.iter().any(|reply| reply == name || reply == "*");
        let approved = self.replies.iter().all(|reply| reply.approved);
        self.replies.is_empty() == when.replies.is_empty()
            && self.replies.iter().all(|reply| takes(&reply.name))
            && when.replies.iter().all(is_replied)
            && when.approved.is_none_or(|wanted| wanted == approved)
    }
}

impl LastResult<'_> {
    fn values(self, join: &str) -> Values {
        let mut values = Values::new();
        let text = self.result.content.text();
        if let Ok(Value::Array(items)) = serde_json::from_str(&text) {
            values.insert("result.count".to_owned(), items.len().to_string());
            values.insert(
                "result.list".to_owned(),
                items.iter().map(plain).collect::<Vec<_>>().join(join),
            );
        }
        if let Ok(Value::Object(args)) = serde_json::from_str(self.args) {
            add_args(&args, &mut values);
        }
        values.insert("result".to_owned(), text.into_owned());
        values.insert("error".to_owned(), self.result.error.clone().unwrap_or_default());
        values
    }
}
