//! A script as it stands in its file.

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
    /// What stands between the items of `{result.list}`.
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

    pub(super) every_ms: Option<u64>,
    pub(super) args: Option<JsonObject>,
    pub(super) result: Option<String>,
    pub(super) within: Option<bool>,
    pub(super) play: Option<Vec<Spanned<Action>>>,
    pub(super) content: Option<JsonObject>,
    pub(super) value: Option<serde_json::Value>,
    pub(super) most: Option<u64>,
    pub(super) code: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) call: String,
    #[serde(default)]
    pub(super) args: JsonObject,
    pub(super) result: Option<String>,
}
