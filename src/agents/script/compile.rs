//! Checks a script and compiles it to [`Reply`]s. Every error is found here, with its place in the text, so playing a
//! compiled script cannot fail.

use std::{collections::HashSet, time::Duration};

use regex::{Regex, RegexBuilder};
use toml::Spanned;

use super::{
    ScriptError,
    format::{self, Action, ActionKind, OneOrMore},
    questions::{Question, Questions},
    reply::{Call, Op, Reply, When},
    template::{JsonTemplate, Template},
};
use crate::protocol::{JsonPatch, PatchOperation, patch};

pub(super) fn compile(script: format::Script) -> Result<(Vec<Reply>, Questions), ScriptError> {
    if script.reply.is_empty() {
        return Err(ScriptError { message: "a script needs at least one [[reply]]".to_owned(), span: None });
    }
    let questions = Questions::of(&script)?;
    let replies = script.reply.into_iter().map(|reply| compile_reply(reply, &questions));
    Ok((replies.collect::<Result<_, _>>()?, questions))
}

fn compile_reply(reply: Spanned<format::Reply>, questions: &Questions) -> Result<Reply, ScriptError> {
    let span = reply.span();
    let format::Reply { when, goes_on, join, play } = reply.into_inner();
    let at_reply = |message: String| ScriptError { message, span: Some(span.clone()) };
    let (user, result) = (when.user.as_ref().map(regex).transpose()?, when.result.as_ref().map(regex).transpose()?);
    let answer = when.answer.iter().map(|(member, text)| Ok((member.clone(), regex(text)?)));
    let answer: Vec<(String, Regex)> = answer.collect::<Result<_, ScriptError>>()?;
    if when.tool.is_none() && (result.is_some() || when.failed.is_some()) {
        return Err(at_reply("`result` and `failed` are about a tool's result and need `tool`".to_owned()));
    }
    let answers = when.answers.into_vec();
    if answers.is_empty() && (when.approved.is_some() || !answer.is_empty()) {
        return Err(at_reply("`approved` and `answer` are about what is answered and need `answers`".to_owned()));
    }
    if !answers.is_empty() && when.tool.is_some() {
        return Err(at_reply("`tool` and `answers` are about different runs".to_owned()));
    }
    let groups: HashSet<String> = [&user, &result]
        .into_iter()
        .flatten()
        .chain(answer.iter().map(|(_, expression)| expression))
        .flat_map(|regex| regex.capture_names().flatten())
        .map(str::to_owned)
        .collect();
    let (has_result, has_answers) = (when.tool.is_some(), !answers.is_empty());
    let known = |name: &str| {
        let of_result = ["result", "error", "result.count", "result.list"].contains(&name);
        let of_answers = ["answer", "results"].contains(&name) || is_member(name, "answer.");
        let args = name == "args" || is_member(name, "args.");
        name == "text"
            || groups.contains(name)
            || (has_result && of_result)
            || (has_answers && of_answers)
            || ((has_result || has_answers) && args)
    };
    let mut compiler = Compiler {
        known: &known,
        questions,
        answers: &answers,
        ops: Vec::new(),
        open_steps: Vec::new(),
        activities: HashSet::new(),
    };
    compiler.actions(play)?;
    let play = compiler.ops;
    let has_result = |tool: &str| play.iter().any(|op| matches!(op, Op::Results { of, .. } if of.includes(tool)));
    questions.check_answers(&answers, has_result).map_err(at_reply)?;
    if goes_on && matches!(play.last(), Some(Op::Interrupts(_) | Op::Fail { .. })) {
        return Err(at_reply("`goes_on` belongs to a reply that does not end the run".to_owned()));
    }
    let when = When {
        user,
        tool: when.tool,
        result,
        failed: when.failed,
        offers: when.offers.into_vec(),
        answers,
        approved: when.approved,
        deep_thinking: when.deep_thinking,
        answer,
        join,
    };
    Ok(Reply { when, goes_on, play })
}

fn is_member(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|member| !member.is_empty())
}

fn regex(text: &Spanned<String>) -> Result<Regex, ScriptError> {
    RegexBuilder::new(text.get_ref()).case_insensitive(true).build().map_err(|error| {
        let message = match error {
            // The last line is the reason; the others repeat the expression.
            regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().replace("error: ", ""),
            other => other.to_string(),
        };
        ScriptError { message: format!("not a regular expression: {message}"), span: Some(text.span()) }
    })
}

struct Compiler<'a> {
    known: &'a dyn Fn(&str) -> bool,
    questions: &'a Questions,
    answers: &'a [String],
    ops: Vec<Op>,
    open_steps: Vec<String>,
    /// The types of the activities that have content, so that a patch can change it.
    activities: HashSet<String>,
}

impl Compiler<'_> {
    fn actions(&mut self, actions: Vec<Spanned<Action>>) -> Result<(), ScriptError> {
        for action in actions {
            let span = action.span();
            self.action(action.into_inner()).map_err(|error| match error {
                ActionError::Here(message) => ScriptError { message, span: Some(span) },
                ActionError::Within(error) => error,
            })?;
        }
        Ok(())
    }

    fn action(&mut self, mut action: Action) -> Result<(), ActionError> {
        if matches!(self.ops.last(), Some(Op::Interrupts(_))) {
            return refuse("`interrupts` end the run, so nothing can follow them");
        }
        let every = Duration::from_millis(action.every_ms.take().unwrap_or(0));
        let paced = every > Duration::ZERO;
        let op = match action.kind().map_err(ActionError::Here)? {
            ActionKind::Text => Op::Text { deltas: self.deltas(action.text.take())?, every },
            ActionKind::Think => Op::Think { deltas: self.deltas(action.think.take())?, every },
            ActionKind::Count => {
                let to = self.template(&action.count.take().unwrap_or_default())?;
                Op::Count { to, most: action.most.take().unwrap_or(1000), every }
            }
            _ if paced => return refuse("`every_ms` belongs to `text`, `think` or `count`"),
            ActionKind::Call => {
                let tool = action.call.take().unwrap_or_default();
                let args = action.args.take().unwrap_or_default();
                let call = self.call(format::Call { call: tool, args, result: action.result.take() })?;
                Op::Calls { calls: vec![call], within: self.within(&mut action)? }
            }
            ActionKind::Calls => {
                let calls = action.calls.take().unwrap_or_default();
                let calls = calls.into_iter().map(|call| self.call(call)).collect::<Result<_, _>>()?;
                Op::Calls { calls, within: self.within(&mut action)? }
            }
            ActionKind::Step => {
                let name = action.step.take().unwrap_or_default();
                let Some(play) = action.play.take() else { return refuse("`step` needs `play`") };
                action.check_all_used().map_err(ActionError::Here)?;
                if self.open_steps.contains(&name) {
                    return refuse(format!("the step {name:?} is already open here"));
                }
                self.ops.push(Op::StepStarted(name.clone()));
                self.open_steps.push(name.clone());
                self.actions(play).map_err(ActionError::Within)?;
                self.open_steps.pop();
                Op::StepFinished(name)
            }
            ActionKind::Activity => {
                let kind = action.activity.take().unwrap_or_default();
                match (action.content.take(), action.patch.take()) {
                    (Some(content), None) => {
                        self.activities.insert(kind.clone());
                        Op::Activity { kind, content: self.json(content.into())? }
                    }
                    (None, Some(patch)) if !patch.iter().all(PatchOperation::keeps_object) => {
                        return refuse("the content of an activity stays a table: the patch puts something else there");
                    }
                    (None, Some(patch)) if self.activities.contains(&kind) => {
                        Op::ActivityPatch { kind, patch: checked_patch(patch)? }
                    }
                    (None, Some(_)) => return refuse(format!("the activity {kind:?} has no `content` yet to patch")),
                    _ => return refuse("`activity` needs `content` or `patch`"),
                }
            }
            ActionKind::State => Op::State(self.json(action.state.take().unwrap_or_default())?),
            ActionKind::Patch => Op::Patch(checked_patch(action.patch.take().unwrap_or_default())?),
            ActionKind::Custom => {
                let name = action.custom.take().unwrap_or_default();
                Op::Custom { name, value: self.json(action.value.take().unwrap_or_default())? }
            }
            ActionKind::Wait => Op::Wait(Duration::from_millis(action.wait_ms.take().unwrap_or(0))),
            ActionKind::Fail => {
                let message = self.template(&action.fail.take().unwrap_or_default())?;
                Op::Fail { message, code: action.code.take() }
            }
            ActionKind::ResultOf => {
                let of = action.result_of.take().unwrap_or_default();
                let (Some(approved), Some(declined)) = (action.approved.take(), action.declined.take()) else {
                    return refuse("`result_of` needs `approved` and `declined`");
                };
                let of = self.questions.answered_call(of, self.answers).map_err(ActionError::Here)?;
                Op::Results { of, approved: self.template(&approved)?, declined: self.template(&declined)? }
            }
            ActionKind::Interrupts if !self.open_steps.is_empty() => return refuse("`interrupts` cannot be in a step"),
            ActionKind::Interrupts => self.interrupts(action.interrupts.take().unwrap_or_default())?,
        };
        action.check_all_used().map_err(ActionError::Here)?;
        self.ops.push(op);
        Ok(())
    }

    fn within(&self, action: &mut Action) -> Result<bool, ActionError> {
        let within = action.within.take().unwrap_or(false);
        if within && !self.ops.iter().any(|op| matches!(op, Op::Text { .. } | Op::Count { .. })) {
            return refuse("`within` needs a message before the call");
        }
        Ok(within)
    }

    fn call(&self, call: format::Call) -> Result<Call, ActionError> {
        Ok(Call {
            tool: call.call,
            args: self.json(call.args.into())?,
            result: call.result.map(|result| self.template(&result)).transpose()?,
        })
    }

    fn interrupts(&self, interrupts: Vec<format::Interrupt>) -> Result<Op, ActionError> {
        let calls = self.ops.iter().flat_map(|op| if let Op::Calls { calls, .. } = op { &calls[..] } else { &[] });
        let unanswered = calls.filter(|call| call.result.is_none()).map(|call| &*call.tool).collect();
        self.questions.check_asked(&interrupts, unanswered).map_err(ActionError::Here)?;
        let known = |name: &str| (self.known)(name) || name == "args" || is_member(name, "args.");
        let questions = interrupts.into_iter().map(|interrupt| {
            // Only the question about a call can name arguments.
            let known: &dyn Fn(&str) -> bool = if interrupt.call.is_some() { &known } else { self.known };
            Question::new(interrupt, known)
        });
        Ok(Op::Interrupts(questions.collect::<Result<_, _>>().map_err(ActionError::Here)?))
    }

    fn deltas(&self, texts: Option<OneOrMore>) -> Result<Vec<Template>, ActionError> {
        let texts = texts.unwrap_or_default().into_vec();
        if texts.iter().all(String::is_empty) {
            return refuse("there is no text");
        }
        texts.iter().map(|text| self.template(text)).collect()
    }

    fn json(&self, value: serde_json::Value) -> Result<JsonTemplate, ActionError> {
        JsonTemplate::parse(value, self.known).map_err(ActionError::Here)
    }

    fn template(&self, text: &str) -> Result<Template, ActionError> {
        Template::parse(text, self.known).map_err(ActionError::Here)
    }
}

/// An error of an action itself, or of one inside it, whose place is known already.
enum ActionError {
    Here(String),
    Within(ScriptError),
}

fn refuse<T>(message: impl Into<String>) -> Result<T, ActionError> {
    Err(ActionError::Here(message.into()))
}

fn checked_patch(patch: JsonPatch) -> Result<JsonPatch, ActionError> {
    patch::check(&patch).map_err(ActionError::Here)?;
    Ok(patch)
}
