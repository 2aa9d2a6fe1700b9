//! The format of a script file, before it is checked.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::protocol::{JsonObject, JsonPatch};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) reply: Vec<Spanned<Reply>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reply {
    #[serde(default)]
    pub(super) when: When,
    #[serde(default)]
    pub(super) goes_on: bool,
    #[serde(default = "comma")]
    pub(super) join: String,
    pub(super) play: Vec<Spanned<Action>>,
}

fn comma() -> String {
    ", ".to_owned()
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct When {
    pub(super) user: Option<Spanned<String>>,
    pub(super) tool: Option<String>,
    pub(super) result: Option<Spanned<String>>,
    pub(super) failed: Option<bool>,
    #[serde(default)]
    pub(super) offers: OneOrMore,
    #[serde(default)]
    pub(super) answers: OneOrMore,
    pub(super) approved: Option<bool>,
    pub(super) deep_thinking: Option<bool>,
    #[serde(default)]
    pub(super) answer: BTreeMap<String, Spanned<String>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMore {
    #[default]
    None,
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::None => Vec::new(),
            Self::One(text) => vec![text],
            Self::More(texts) => texts,
        }
    }
}

/// An action: one key of the first group, which is its kind, and keys of the second group that belong to the kind.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Action {
    pub(super) text: Option<OneOrMore>,
    pub(super) think: Option<OneOrMore>,
    pub(super) call: Option<String>,
    pub(super) calls: Option<Vec<Call>>,
    pub(super) step: Option<String>,
    pub(super) state: Option<serde_json::Value>,
    pub(super) patch: Option<JsonPatch>,
    pub(super) activity: Option<String>,
    pub(super) custom: Option<String>,
    pub(super) count: Option<String>,
    pub(super) wait_ms: Option<u64>,
    pub(super) fail: Option<String>,
    pub(super) result_of: Option<String>,
    pub(super) interrupts: Option<Vec<Interrupt>>,

    pub(super) every_ms: Option<u64>,
    pub(super) args: Option<JsonObject>,
    pub(super) result: Option<String>,
    pub(super) within: Option<bool>,
    pub(super) play: Option<Vec<Spanned<Action>>>,
    pub(super) content: Option<JsonObject>,
    pub(super) value: Option<serde_json::Value>,
    pub(super) most: Option<u64>,
    pub(super) code: Option<String>,
    pub(super) approved: Option<String>,
    pub(super) declined: Option<String>,
}

#[derive(Clone, Copy)]
pub(super) enum ActionKind {
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
    ResultOf,
    Interrupts,
}

impl Action {
    pub(super) fn kind(&self) -> Result<ActionKind, String> {
        let keys = [
            (self.text.is_some(), "text", ActionKind::Text),
            (self.think.is_some(), "think", ActionKind::Think),
            (self.call.is_some(), "call", ActionKind::Call),
            (self.calls.is_some(), "calls", ActionKind::Calls),
            (self.step.is_some(), "step", ActionKind::Step),
            (self.state.is_some(), "state", ActionKind::State),
            (self.patch.is_some() && self.activity.is_none(), "patch", ActionKind::Patch),
            (self.activity.is_some(), "activity", ActionKind::Activity),
            (self.custom.is_some(), "custom", ActionKind::Custom),
            (self.count.is_some(), "count", ActionKind::Count),
            (self.wait_ms.is_some(), "wait_ms", ActionKind::Wait),
            (self.fail.is_some(), "fail", ActionKind::Fail),
            (self.result_of.is_some(), "result_of", ActionKind::ResultOf),
            (self.interrupts.is_some(), "interrupts", ActionKind::Interrupts),
        ];
        let mut present = keys.iter().filter(|(present, ..)| *present);
        match (present.next(), present.next()) {
            (Some((_, _, kind)), None) => Ok(*kind),
            (Some((_, a, _)), Some((_, b, _))) => Err(format!("`{a}` and `{b}` cannot be one action")),
            (None, _) => {
                let names = keys.map(|(_, name, _)| format!("`{name}`")).join(", ");
                Err(format!("an action needs one of {names}"))
            }
        }
    }

    /// Checks that compilation has taken every key that is not a kind. The rest belong to another kind.
    pub(super) fn check_all_used(&self) -> Result<(), String> {
        let rest = [
            (self.args.is_some(), "args", "call"),
            (self.result.is_some(), "result", "call"),
            (self.within.is_some(), "within", "call` or `calls"),
            (self.play.is_some(), "play", "step"),
            (self.content.is_some(), "content", "activity"),
            (self.value.is_some(), "value", "custom"),
            (self.most.is_some(), "most", "count"),
            (self.code.is_some(), "code", "fail"),
            (self.approved.is_some(), "approved", "result_of"),
            (self.declined.is_some(), "declined", "result_of"),
        ];
        match rest.into_iter().find(|(present, ..)| *present) {
            Some((_, name, owner)) => Err(format!("`{name}` belongs to `{owner}`")),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) call: String,
    #[serde(default)]
    pub(super) args: JsonObject,
    pub(super) result: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Interrupt {
    /// The tool whose call needs an approval. An interrupt has either this or a `name`.
    pub(super) call: Option<String>,
    pub(super) name: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) schema: Option<JsonObject>,
    /// `u32`, so that now and these seconds are always a valid date.
    pub(super) expires_in_secs: Option<u32>,
    pub(super) metadata: Option<JsonObject>,
}
