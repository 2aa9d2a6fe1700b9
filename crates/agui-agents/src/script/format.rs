//! The format of a script file. The agent plays the types that are read: [`check`](super::check) has checked them.

use std::{collections::BTreeMap, fmt};

use regex::{Regex, RegexBuilder};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Value, json};
use toml::Spanned;

use super::{
    questions::ScriptQuestion,
    template::{JsonTemplate, Template},
};
use agui_protocol::{JsonObject, host::JsonPatch, patch};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptFile {
    pub(super) description: Option<String>,
    pub(super) starters: Option<JsonObject>,
    #[serde(default, rename = "answer")]
    pub(super) lines: Vec<Spanned<ScriptLine>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptLine {
    #[serde(default)]
    pub(super) when: When,
    /// True if the next line whose conditions hold is played after this one.
    #[serde(default)]
    pub(super) goes_on: bool,
    #[serde(default = "comma")]
    pub(super) join: String,
    /// [`check`](super::check) flattens steps: the actions of a step stand between [`ActionKind::Step`] and
    /// [`ActionKind::StepEnd`].
    pub(super) play: Vec<Spanned<Action>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct When {
    pub(super) user: Option<Expression>,
    pub(super) tool: Option<String>,
    pub(super) result: Option<Expression>,
    pub(super) failed: Option<bool>,
    pub(super) offers: Option<String>,
    /// The names of the interrupts that the run must reply to, and no others. Empty: the run replies to no interrupt.
    #[serde(deserialize_with = "one_or_more")]
    pub(super) replies: Vec<String>,
    pub(super) approved: Option<bool>,
    pub(super) deep_thinking: Option<bool>,
    pub(super) reply: BTreeMap<String, Expression>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Expression(pub(super) Regex);

impl TryFrom<String> for Expression {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let regex = RegexBuilder::new(&text).case_insensitive(true).build();
        regex.map(Self).map_err(|error| match error {
            // The last line is the reason; the others repeat the expression.
            regex::Error::Syntax(text) => {
                let reason = text.lines().last().unwrap_or_default().replace("error: ", "");
                format!("not a regular expression: {reason}")
            }
            other => format!("not a regular expression: {other}"),
        })
    }
}

/// An action is one row of `play`. The key that has the name of a variant is its kind; the other keys are options of the
/// kind.
#[derive(Debug)]
pub(super) struct Action(pub(super) ActionKind);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ActionKind {
    Text {
        #[serde(deserialize_with = "deltas")]
        text: Vec<Template>,
        #[serde(default)]
        every_ms: u64,
    },
    Think {
        #[serde(deserialize_with = "deltas")]
        think: Vec<Template>,
        #[serde(default)]
        every_ms: u64,
    },
    Count {
        count: Template,
        #[serde(default = "thousand")]
        most: u64,
        #[serde(default)]
        every_ms: u64,
    },
    Calls {
        calls: Vec<Call>,
        #[serde(default)]
        within: bool,
    },
    Step {
        step: String,
        play: Vec<Action>,
    },
    #[serde(skip)]
    StepEnd(String),
    State {
        state: JsonTemplate,
    },
    Activity {
        activity: String,
        #[serde(default, deserialize_with = "table")]
        content: Option<JsonTemplate>,
        #[serde(default, deserialize_with = "checked_patch")]
        patch: JsonPatch,
    },
    Patch {
        #[serde(deserialize_with = "checked_patch")]
        patch: JsonPatch,
    },
    Custom {
        custom: String,
        value: Option<JsonTemplate>,
    },
    WaitMs {
        wait_ms: u64,
    },
    Fail {
        fail: Template,
        code: Option<String>,
    },
    ResultOf {
        result_of: String,
        approved: Template,
        declined: Template,
    },
    Interrupts {
        interrupts: Vec<ScriptQuestion>,
    },
}

/// The kinds, in the order in which the keys of a row are looked up: an activity can have a `patch`. `call` stands for
/// `calls` with one call.
const KINDS: [&str; 14] = [
    "text",
    "think",
    "count",
    "call",
    "calls",
    "step",
    "state",
    "activity",
    "patch",
    "custom",
    "wait_ms",
    "fail",
    "result_of",
    "interrupts",
];

/// A tool call. Without a result, it is left to the application or to an interrupt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) call: String,
    #[serde(default, deserialize_with = "table")]
    pub(super) args: Option<JsonTemplate>,
    pub(super) result: Option<Template>,
}

/// Reads the row as JSON. An error within it gets the place of the row.
impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Row;

        impl<'de> Visitor<'de> for Row {
            type Value = Action;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an action: a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Action, A::Error> {
                let row = JsonObject::deserialize(MapAccessDeserializer::new(map))?;
                Action::from_row(row).map_err(A::Error::custom)
            }
        }

        deserializer.deserialize_any(Row)
    }
}

impl Action {
    fn from_row(mut row: JsonObject) -> Result<Self, String> {
        let Some(kind) = KINDS.into_iter().find(|kind| row.contains_key(*kind)) else {
            return Err(format!("an action needs one of `{}`", KINDS.join("`, `")));
        };
        let tagged = if kind == "call" {
            let within = row.remove("within").unwrap_or(false.into());
            json!({ "calls": { "calls": [row], "within": within } })
        } else {
            json!({ kind: row })
        };
        serde_json::from_value(tagged).map(Self).map_err(|error| error.to_string())
    }

    /// Returns the templates of the action, but not those of the actions in a step.
    pub(super) fn templates(&self) -> Vec<&Template> {
        match &self.0 {
            ActionKind::Text { text, .. } | ActionKind::Think { think: text, .. } => {
                text.iter().collect()
            }
            ActionKind::Count { count, .. } => vec![count],
            ActionKind::Calls { calls, .. } => {
                let args =
                    calls.iter().filter_map(|call| call.args.as_ref()).flat_map(|args| &args.texts);
                calls.iter().filter_map(|call| call.result.as_ref()).chain(args).collect()
            }
            ActionKind::State { state } => state.texts.iter().collect(),
            ActionKind::Activity { content: json, .. } | ActionKind::Custom { value: json, .. } => {
                json.iter().flat_map(|json| &json.texts).collect()
            }
            ActionKind::Fail { fail, .. } => vec![fail],
            ActionKind::ResultOf { approved, declined, .. } => vec![approved, declined],
            ActionKind::Interrupts { interrupts } => {
                interrupts.iter().filter_map(|question| question.message.as_ref()).collect()
            }
            ActionKind::Step { .. }
            | ActionKind::StepEnd(_)
            | ActionKind::Patch { .. }
            | ActionKind::WaitMs { .. } => Vec::new(),
        }
    }
}

fn comma() -> String {
    ", ".to_owned()
}

fn thousand() -> u64 {
    1000
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum OneOrMore {
        One(String),
        More(Vec<String>),
    }
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::One(text) => vec![text],
        OneOrMore::More(texts) => texts,
    })
}

fn deltas<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Template>, D::Error> {
    let texts = one_or_more(deserializer)?;
    if texts.iter().all(String::is_empty) {
        return Err(D::Error::custom("there is no text"));
    }
    texts.into_iter().map(Template::try_from).collect::<Result<_, _>>().map_err(D::Error::custom)
}

fn table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<JsonTemplate>, D::Error> {
    let table = Value::Object(JsonObject::deserialize(deserializer)?);
    JsonTemplate::try_from(table).map(Some).map_err(D::Error::custom)
}

fn checked_patch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JsonPatch, D::Error> {
    let operations = JsonPatch::deserialize(deserializer)?;
    patch::check(&operations).map_err(D::Error::custom)?;
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_action_is_looked_up_and_documented() {
        let unknown =
            serde_json::from_value::<ActionKind>(json!({ "?": {} })).unwrap_err().to_string();
        let kinds: Vec<_> =
            KINDS.iter().filter(|kind| **kind != "call").map(|kind| format!("`{kind}`")).collect();
        assert_eq!(unknown, format!("unknown variant `?`, expected one of {}", kinds.join(", ")));
        for kind in KINDS {
            assert!(include_str!("mod.rs").contains(&format!("//! | `{kind}` | ")), "{kind}");
        }
    }
}
