//! The rules of a comparison: `expect.toml` for all recordings of a folder, and `NAME.expect.toml` for one of them.

use std::{io::ErrorKind, path::Path};

use jsonschema::Validator;
use regex::Regex;
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;
use toml::Table;

use agui_observe::recording::Recording;

/// The parts of a run that have to equal the recording, and further conditions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Rules {
    /// The agent's texts.
    pub(super) text: TextRule,
    /// The arguments of tool calls.
    pub(super) arguments: Equality,
    /// The results of tools.
    pub(super) results: Equality,
    /// The text of reasoning.
    pub(super) reasoning: Equality,
    /// Types of events that are not compared, such as `CUSTOM`.
    pub(super) ignore: Vec<String>,
    /// The longest time of the run, in milliseconds.
    pub(super) max_ms: Option<u64>,
    /// The most input tokens of the run.
    pub(super) max_input_tokens: Option<u64>,
    /// The most output tokens of the run.
    pub(super) max_output_tokens: Option<u64>,
}

/// The comparison of a part of the run with the recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Equality {
    #[default]
    Exact,
    Any,
}

/// A rule for the texts of a run. The rules but `exact` apply to all texts together, and their number does not count.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TextRule {
    /// Each text is equal.
    #[default]
    Exact,
    /// Any texts.
    Any,
    /// All of these occur in the text.
    Contains(Vec<String>),
    /// The regular expression matches somewhere in the text.
    #[serde(deserialize_with = "expression")]
    Matches(Regex),
    /// The text is JSON that fits the schema.
    #[serde(deserialize_with = "schema")]
    Schema(Validator),
}

impl Rules {
    /// Reads the rules of each recording.
    pub(super) fn read_all(dir: &Path, recordings: &[Recording]) -> Result<Vec<Self>, String> {
        let common = read(&dir.join("expect.toml"))?.unwrap_or_default();
        let of_recording = |recording: &Recording| {
            let path = dir.join(format!("{}.expect.toml", recording.name));
            let mut table = common.clone();
            let own = read(&path)?;
            let path = if own.is_some() { path } else { dir.join("expect.toml") };
            table.extend(own.unwrap_or_default());
            table.try_into().map_err(|error: toml::de::Error| {
                format!("{}: {}", path.display(), error.message())
            })
        };
        recordings.iter().map(of_recording).collect()
    }
}

fn expression<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Regex, D::Error> {
    Regex::new(&String::deserialize(deserializer)?)
        .map_err(|error| D::Error::custom(format!("text.matches: {error}")))
}

fn schema<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Validator, D::Error> {
    let schema = Value::deserialize(deserializer)?;
    jsonschema::validator_for(&schema)
        .map_err(|error| D::Error::custom(format!("text.schema: {error}")))
}

fn read(path: &Path) -> Result<Option<Table>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text)
            .map(Some)
            .map_err(|error| format!("{}: {}", path.display(), error.message())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
    }
}
