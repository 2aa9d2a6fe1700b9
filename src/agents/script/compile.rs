//! Checks a script, and brings it into the form it is played in.

use std::{collections::HashSet, time::Duration};

use regex::{Regex, RegexBuilder};
use toml::Spanned;

use super::{
    Script, ScriptError,
    format::{self, Action, OneOrMore},
    template::{JsonTemplate, Template},
};
use crate::protocol::{
    AgentCapabilities, JsonPatch,
    capabilities::{Identity, Reasoning, StateCapabilities, Tools},
    patch::is_pointer,
};

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) when: When,
    pub(super) play: Vec<Op>,
}

#[derive(Debug)]
pub(super) struct When {
    pub(super) user: Option<Regex>,
    pub(super) tool: Option<String>,
    pub(super) result: Option<Regex>,
    pub(super) failed: Option<bool>,
    pub(super) offers: Vec<String>,
    pub(super) join: String,
}

/// One thing to play. Steps are flattened: a start, what happens in them, and an end.
#[derive(Debug)]
pub(super) enum Op {
    Text { deltas: Vec<Template>, every: Duration },
    Think { deltas: Vec<Template>, every: Duration },
    Calls { calls: Vec<Call>, within: bool },
    StepStarted(String),
    StepFinished(String),
    State(JsonTemplate),
    Patch(JsonPatch),
    Activity { kind: String, content: JsonTemplate },
    ActivityPatch { kind: String, patch: JsonPatch },
    Custom { name: String, value: JsonTemplate },
    Count { to: Template, most: u64, every: Duration },
    Wait(Duration),
    Fail { message: Template, code: Option<String> },
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) args: JsonTemplate,
    pub(super) result: Option<Template>,
}

pub(super) fn compile(script: format::Script) -> Result<Script, ScriptError> {
    let mut replies = Vec::new();
    for reply in script.reply {
        replies.push(compile_reply(reply)?);
    }
    if replies.is_empty() {
        return Err(ScriptError { message: "a script needs at least one [[reply]]".to_owned(), span: None });
    }
    let capabilities = declare(script.description, &replies);
    Ok(Script { replies: replies.into(), capabilities })
}

fn compile_reply(reply: Spanned<format::Reply>) -> Result<Reply, ScriptError> {
    let span = reply.span();
    let format::Reply { when, join, play } = reply.into_inner();
    let (user, result) = (when.user.as_ref().map(regex).transpose()?, when.result.as_ref().map(regex).transpose()?);
    if when.tool.is_none() && (result.is_some() || when.failed.is_some()) {
        let message = "`result` and `failed` are about a tool's result and need `tool`".to_owned();
        return Err(ScriptError { message, span: Some(span) });
    }
    let groups: HashSet<String> = [&user, &result]
        .into_iter()
        .flatten()
        .flat_map(|regex| regex.capture_names().flatten())
        .map(str::to_owned)
        .collect();
    let has_result = when.tool.is_some();
    let known = |name: &str| {
        let of_result = ["result", "error", "result.count", "result.list"].contains(&name)
            || name.strip_prefix("args.").is_some_and(|arg| !arg.is_empty());
        name == "text" || groups.contains(name) || (has_result && of_result)
    };
    let mut compiler = Compiler { known: &known, ops: Vec::new(), open_steps: Vec::new(), activities: HashSet::new() };
    compiler.actions(play)?;
    let when = When { user, tool: when.tool, result, failed: when.failed, offers: when.offers.into_vec(), join };
    Ok(Reply { when, play: compiler.ops })
}

fn regex(text: &Spanned<String>) -> Result<Regex, ScriptError> {
    RegexBuilder::new(text.get_ref()).case_insensitive(true).build().map_err(|error| {
        let message = match error {
            // The whole of it would repeat the expression over several lines.
            regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().replace("error: ", ""),
            other => other.to_string(),
        };
        ScriptError { message: format!("not a regular expression: {message}"), span: Some(text.span()) }
    })
}

struct Compiler<'a> {
    known: &'a dyn Fn(&str) -> bool,
    ops: Vec<Op>,
    open_steps: Vec<String>,
    /// The activities that a patch can amend.
    activities: HashSet<String>,
}

impl Compiler<'_> {
    fn actions(&mut self, actions: Vec<Spanned<Action>>) -> Result<(), ScriptError> {
        for action in actions {
            let span = action.span();
            self.action(action.into_inner()).map_err(|fault| match fault {
                Fault::Here(message) => ScriptError { message, span: Some(span) },
                Fault::Within(error) => error,
            })?;
        }
        Ok(())
    }

    fn action(&mut self, mut action: Action) -> Result<(), Fault> {
        let every = Duration::from_millis(action.every_ms.take().unwrap_or(0));
        let paced = every > Duration::ZERO;
        let op = match Kind::of(&action)? {
            Kind::Text => Op::Text { deltas: self.deltas(action.text.take())?, every },
            Kind::Think => Op::Think { deltas: self.deltas(action.think.take())?, every },
            Kind::Count => {
                let to = self.template(&action.count.take().unwrap_or_default())?;
                Op::Count { to, most: action.most.take().unwrap_or(1000), every }
            }
            _ if paced => return fault("`every_ms` belongs to `text`, `think` or `count`"),
            Kind::Call => {
                let tool = action.call.take().unwrap_or_default();
                let args = action.args.take().unwrap_or_default();
                let call = self.call(format::Call { call: tool, args, result: action.result.take() })?;
                Op::Calls { calls: vec![call], within: self.within(&mut action)? }
            }
            Kind::Calls => {
                let calls = action.calls.take().unwrap_or_default();
                let calls = calls.into_iter().map(|call| self.call(call)).collect::<Result<_, _>>()?;
                Op::Calls { calls, within: self.within(&mut action)? }
            }
            Kind::Step => {
                let name = action.step.take().unwrap_or_default();
                let Some(play) = action.play.take() else { return fault("`step` needs `play`") };
                unused(&action)?;
                if self.open_steps.contains(&name) {
                    return fault(format!("the step {name:?} is already open here"));
                }
                self.ops.push(Op::StepStarted(name.clone()));
                self.open_steps.push(name.clone());
                self.actions(play).map_err(Fault::Within)?;
                self.open_steps.pop();
                Op::StepFinished(name)
            }
            Kind::Activity => {
                let kind = action.activity.take().unwrap_or_default();
                match (action.content.take(), action.patch.take()) {
                    (Some(content), None) => {
                        self.activities.insert(kind.clone());
                        Op::Activity { kind, content: self.json(content.into())? }
                    }
                    (None, Some(patch)) if self.activities.contains(&kind) => {
                        Op::ActivityPatch { kind, patch: checked(patch)? }
                    }
                    (None, Some(_)) => return fault(format!("the activity {kind:?} has no `content` yet to patch")),
                    _ => return fault("`activity` needs `content` or `patch`"),
                }
            }
            Kind::State => Op::State(self.json(action.state.take().unwrap_or_default())?),
            Kind::Patch => Op::Patch(checked(action.patch.take().unwrap_or_default())?),
            Kind::Custom => {
                let name = action.custom.take().unwrap_or_default();
                Op::Custom { name, value: self.json(action.value.take().unwrap_or_default())? }
            }
            Kind::Wait => Op::Wait(Duration::from_millis(action.wait_ms.take().unwrap_or(0))),
            Kind::Fail => {
                let message = self.template(&action.fail.take().unwrap_or_default())?;
                Op::Fail { message, code: action.code.take() }
            }
        };
        unused(&action)?;
        self.ops.push(op);
        Ok(())
    }

    /// Whether the action's calls belong to the message before them.
    fn within(&self, action: &mut Action) -> Result<bool, Fault> {
        let within = action.within.take().unwrap_or(false);
        if within && !self.ops.iter().any(|op| matches!(op, Op::Text { .. } | Op::Count { .. })) {
            return fault("`within` needs a message before the call");
        }
        Ok(within)
    }

    fn call(&self, call: format::Call) -> Result<Call, Fault> {
        Ok(Call {
            tool: call.call,
            args: self.json(call.args.into())?,
            result: call.result.map(|result| self.template(&result)).transpose()?,
        })
    }

    fn deltas(&self, texts: Option<OneOrMore>) -> Result<Vec<Template>, Fault> {
        let texts = texts.unwrap_or_default().into_vec();
        if texts.iter().all(String::is_empty) {
            return fault("there is no text");
        }
        texts.iter().map(|text| self.template(text)).collect()
    }

    fn json(&self, value: serde_json::Value) -> Result<JsonTemplate, Fault> {
        JsonTemplate::parse(value, self.known).map_err(Fault::Here)
    }

    fn template(&self, text: &str) -> Result<Template, Fault> {
        Template::parse(text, self.known).map_err(Fault::Here)
    }
}

/// Something wrong with an action itself, or with one inside it.
enum Fault {
    Here(String),
    Within(ScriptError),
}

fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Here(message.into()))
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Think,
    Call,
    Calls,
    Step,
    State,
    Patch,
    Activity,
    Custom,
    Count,
    Wait,
    Fail,
}

impl Kind {
    /// The one key that says what an action plays.
    fn of(action: &Action) -> Result<Self, Fault> {
        let keys = [
            (action.text.is_some(), "text", Self::Text),
            (action.think.is_some(), "think", Self::Think),
            (action.call.is_some(), "call", Self::Call),
            (action.calls.is_some(), "calls", Self::Calls),
            (action.step.is_some(), "step", Self::Step),
            (action.state.is_some(), "state", Self::State),
            (action.patch.is_some() && action.activity.is_none(), "patch", Self::Patch),
            (action.activity.is_some(), "activity", Self::Activity),
            (action.custom.is_some(), "custom", Self::Custom),
            (action.count.is_some(), "count", Self::Count),
            (action.wait_ms.is_some(), "wait_ms", Self::Wait),
            (action.fail.is_some(), "fail", Self::Fail),
        ];
        let mut present = keys.iter().filter(|(present, ..)| *present);
        match (present.next(), present.next()) {
            (Some((_, _, kind)), None) => Ok(*kind),
            (Some((_, a, _)), Some((_, b, _))) => fault(format!("`{a}` and `{b}` cannot be one action")),
            (None, _) => {
                let names = keys.map(|(_, name, _)| format!("`{name}`")).join(", ");
                fault(format!("an action needs one of {names}"))
            }
        }
    }
}

/// Keys that belong to another kind of action.
fn unused(action: &Action) -> Result<(), Fault> {
    let rest = [
        (action.args.is_some(), "args", "call"),
        (action.result.is_some(), "result", "call"),
        (action.within.is_some(), "within", "call` or `calls"),
        (action.play.is_some(), "play", "step"),
        (action.content.is_some(), "content", "activity"),
        (action.value.is_some(), "value", "custom"),
        (action.most.is_some(), "most", "count"),
        (action.code.is_some(), "code", "fail"),
    ];
    match rest.into_iter().find(|(present, ..)| *present) {
        Some((_, name, owner)) => fault(format!("`{name}` belongs to `{owner}`")),
        None => Ok(()),
    }
}

fn checked(patch: JsonPatch) -> Result<JsonPatch, Fault> {
    for operation in &patch {
        let (path, from) = operation.pointers();
        if let Some(text) = [Some(path), from].into_iter().flatten().find(|text| !is_pointer(text)) {
            return fault(format!("{text:?} is not a JSON Pointer"));
        }
    }
    Ok(patch)
}

/// What a script does can be read from it.
fn declare(description: Option<String>, replies: &[Reply]) -> AgentCapabilities {
    let has = |test: fn(&Op) -> bool| Some(replies.iter().flat_map(|reply| &reply.play).any(test));
    AgentCapabilities {
        identity: Some(Identity { r#type: Some("agui-server".to_owned()), description, ..Identity::default() }),
        tools: Some(Tools {
            supported: has(|op| matches!(op, Op::Calls { .. })),
            parallel_calls: has(|op| matches!(op, Op::Calls { calls, .. } if calls.len() > 1)),
            client_provided: Some(replies.iter().any(|reply| !reply.when.offers.is_empty())),
            items: None,
        }),
        state: Some(StateCapabilities {
            snapshots: has(|op| matches!(op, Op::State(_))),
            deltas: has(|op| matches!(op, Op::Patch(_))),
            ..StateCapabilities::default()
        }),
        reasoning: Some(Reasoning {
            supported: has(|op| matches!(op, Op::Think { .. })),
            streaming: has(|op| matches!(op, Op::Think { .. })),
            encrypted: Some(false),
        }),
        ..AgentCapabilities::default()
    }
}
