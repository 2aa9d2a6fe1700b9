//! What a script can ask about a conversation.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    answers::{Answer, add_args, answers},
    compile::When,
    questions::{Questions, takes},
    template::{Values, plain},
};
use crate::protocol::{Message, RunAgentInput, ToolMessage};

/// A conversation, seen from its end.
pub(super) struct Conversation<'a> {
    input: &'a RunAgentInput,
    user: Cow<'a, str>,
    /// The tool result that the conversation ends with, and the name and arguments of the call it answers.
    answered: Option<(&'a ToolMessage, &'a str, &'a str)>,
    /// What people answered to what the script asked.
    answers: Vec<Answer>,
}

/// What a reply is played with.
#[derive(Debug)]
pub(super) struct Fit {
    /// What placeholders stand for; for those of the answers, the first answer that has them.
    pub(super) values: Values,
    /// The same without those of the answers, for what is played for each of them.
    pub(super) common: Values,
    pub(super) answers: Vec<Answer>,
}

impl<'a> Conversation<'a> {
    pub(super) fn of(input: &'a RunAgentInput, questions: &Questions) -> Self {
        let answers = answers(input, questions);
        let last = input.messages.iter().rev().find(|m| !matches!(m, Message::Activity(_) | Message::Reasoning(_)));
        let answered = match last {
            // Who answers a question goes on from there, whatever the conversation ends with.
            Some(Message::Tool(result)) if answers.is_empty() => {
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
        Self { input, user: input.last_user_text().unwrap_or_default(), answered, answers }
    }

    /// Whether the conditions hold, and what their placeholders then stand for.
    pub(super) fn fits(&self, when: &When) -> Option<Fit> {
        if !self.answers_fit(when) {
            return None;
        }
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
        let texts = [(&when.user, &*self.user), (&when.result, &*result)];
        let mut wanted: Vec<_> =
            texts.into_iter().filter_map(|(wanted, text)| Some((wanted.as_ref()?, text))).collect();
        for (member, expression) in &when.answer {
            let member = format!("answer.{member}");
            wanted.push((expression, self.answers.iter().find_map(|answer| answer.values.get(&member))?));
        }
        for (expression, text) in wanted {
            let groups = expression.captures(text)?;
            for name in expression.capture_names().flatten() {
                values.insert(name.to_owned(), groups.name(name).map_or("", |group| group.as_str()).to_owned());
            }
        }
        values.insert("text".to_owned(), self.user.to_string());
        let common = values.clone();
        for answer in self.answers.iter().rev() {
            values.extend(answer.values.clone());
        }
        Some(Fit { values, common, answers: self.answers.clone() })
    }

    /// Whether the run answers what it should: all that is named, and nothing else.
    fn answers_fit(&self, when: &When) -> bool {
        let answered = |name: &String| name == "*" || self.answers.iter().any(|answer| answer.name == *name);
        let approved = self.answers.iter().all(|answer| answer.approved);
        self.answers.is_empty() == when.answers.is_empty()
            && self.answers.iter().all(|answer| takes(&when.answers, &answer.name))
            && when.answers.iter().all(answered)
            && when.approved.is_none_or(|wanted| wanted == approved)
    }

    fn add_result(&self, (result, _, args): (&ToolMessage, &str, &str), join: &str, values: &mut Values) {
        let text = result.content.text();
        if let Ok(Value::Array(items)) = serde_json::from_str(&text) {
            values.insert("result.count".to_owned(), items.len().to_string());
            values.insert("result.list".to_owned(), items.iter().map(plain).collect::<Vec<_>>().join(join));
        }
        if let Ok(Value::Object(args)) = serde_json::from_str(args) {
            add_args(&args, values);
        }
        values.insert("result".to_owned(), text.into_owned());
        values.insert("error".to_owned(), result.error.clone().unwrap_or_default());
    }
}
