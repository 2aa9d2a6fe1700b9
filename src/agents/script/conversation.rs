//! What a script can ask about a conversation.

use std::borrow::Cow;

use serde_json::Value;

use super::{compile::When, template::Values};
use crate::protocol::{Message, RunAgentInput, ToolMessage};

/// A conversation, seen from its end.
pub(super) struct Conversation<'a> {
    input: &'a RunAgentInput,
    user: Cow<'a, str>,
    /// The tool result that the conversation ends with, and the name and arguments of the call it answers.
    answered: Option<(&'a ToolMessage, &'a str, &'a str)>,
}

impl<'a> Conversation<'a> {
    pub(super) fn of(input: &'a RunAgentInput) -> Self {
        let last = input.messages.iter().rev().find(|m| !matches!(m, Message::Activity(_) | Message::Reasoning(_)));
        let answered = match last {
            Some(Message::Tool(result)) => {
                let calls = input.messages.iter().rev().filter_map(|message| match message {
                    Message::Assistant(assistant) => Some(assistant.tool_calls()),
                    _ => None,
                });
                let call = calls.flatten().find(|call| call.id == result.tool_call_id);
                let (name, args) = call.map_or(("", "{}"), |call| (&*call.function.name, &*call.function.arguments));
                Some((result, name, args))
            }
            _ => None,
        };
        Self { input, user: input.last_user_text().unwrap_or_default(), answered }
    }

    /// Whether the conditions hold, and what their placeholders then stand for.
    pub(super) fn fits(&self, when: &When) -> Option<Values> {
        let mut values = Values::new();
        match (&when.tool, self.answered) {
            (None, Some(_)) => return None,
            (Some(_), None) => return None,
            (Some(tool), Some((_, name, _))) if tool != name && tool != "*" => return None,
            (Some(_), Some(answered)) => self.add_result(answered, &when.join, &mut values),
            (None, None) => {}
        }
        let failed = self.answered.is_some_and(|(result, ..)| result.error.is_some());
        if when.failed.is_some_and(|wanted| wanted != failed) {
            return None;
        }
        if !when.offers.iter().all(|tool| self.input.tool(tool).is_some()) {
            return None;
        }
        let result = values.get("result").cloned().unwrap_or_default();
        for (expression, text) in [(&when.user, &*self.user), (&when.result, &*result)] {
            let Some(expression) = expression else { continue };
            let groups = expression.captures(text)?;
            for name in expression.capture_names().flatten() {
                values.insert(name.to_owned(), groups.name(name).map_or("", |group| group.as_str()).to_owned());
            }
        }
        values.insert("text".to_owned(), self.user.to_string());
        Some(values)
    }

    fn add_result(&self, (result, _, args): (&ToolMessage, &str, &str), join: &str, values: &mut Values) {
        let text = result.content.text();
        if let Ok(Value::Array(items)) = serde_json::from_str(&text) {
            values.insert("result.count".to_owned(), items.len().to_string());
            values.insert("result.list".to_owned(), items.iter().map(plain).collect::<Vec<_>>().join(join));
        }
        if let Ok(Value::Object(args)) = serde_json::from_str(args) {
            values.extend(args.iter().map(|(name, value)| (format!("args.{name}"), plain(value))));
        }
        values.insert("result".to_owned(), text.into_owned());
        values.insert("error".to_owned(), result.error.clone().unwrap_or_default());
    }
}

/// A JSON value for people: a string without its quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
