//! A script as it stands in its file.

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
    /// What stands between the items of `{result.list}` and `{results}`.
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
    #[serde(default)]
    pub(super) answer: BTreeMap<String, Spanned<String>>,
}

/// One text, or a list of them.
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

/// An action: one of the keys that say what is played, and those that belong to it.
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
    /// The tool whose call waits for approval, or else a `name`.
    pub(super) call: Option<String>,
    pub(super) name: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) schema: Option<JsonObject>,
    /// So small a type that any number of seconds from now is still a date.
    pub(super) expires_in_secs: Option<u32>,
    pub(super) metadata: Option<JsonObject>,
}
