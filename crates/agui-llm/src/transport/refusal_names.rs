//! Finds the parameter that a refusal names.
//!
//! A path in the refusal names it for certain. Without a path, the text of the refusal is searched.
//! A refusal may quote the texts of callers, their tools' names and the members of their schemas.
//! So a name is in doubt if it also occurs elsewhere in the request.

use std::collections::HashSet;

use serde_json::Value;

use super::parameters::{GROUPS, IfRefused, PARAMETERS, Parameter};

/// The lists of a request with the content of callers.
const LISTS: &[&str] = &["tools", "messages", "contents", "input", "system"];
/// Further steps in the paths of parameters, beside numbers and the names of groups and lists.
const STEPS: &[&str] = &["body", "generation_config", "custom", "function", "content"];
/// The members of a refusal that lead to its paths. Other members can repeat the request.
const WRAPPERS: &[&str] =
    &["error", "message", "detail", "details", "errors", "fieldViolations", "field_violations"];

/// A parameter that a request has, and that may be left out of it or renamed.
pub(super) struct Named {
    pub(super) parameter: &'static Parameter,
    /// The request without the parameter.
    pub(super) without: Value,
    /// True if the caller may have written the name.
    pub(super) is_in_doubt: bool,
}

/// Returns the parameter of a request that a refusal names first. A path such as
/// `output_config.effort` names its last step.
pub(super) fn named(refusal: &str, request: &mut Value) -> Option<Named> {
    let mut said = Said::default();
    match serde_json::from_str(refusal) {
        Ok(json) => said.read(&json, true),
        Err(_) => refusal.clone_into(&mut said.text),
    }
    let targets: Vec<_> = said.places.iter().map(|place| Target::find(place, request)).collect();
    if let Some(parameter) = targets.iter().find_map(Target::parameter) {
        return Named::new(parameter, request, "");
    }
    if targets.iter().any(|target| !matches!(target, Target::Request)) {
        return None;
    }
    let (paths, names): (Vec<_>, Vec<_>) =
        words(&said.text).partition(|word| word.contains(['.', '[']));
    // A refusal can repeat a caller's text with a thousand occurrences of the name, and each check
    // reads the request.
    let (mut in_doubt, mut tried) = (None, HashSet::new());
    for (word, is_path) in
        paths.iter().map(|path| (path, true)).chain(names.iter().map(|name| (name, false)))
    {
        match Target::find(word, request) {
            Target::Parameter(parameter) if tried.insert(parameter.name) => {
                match Named::new(parameter, request, word)? {
                    named if named.is_in_doubt => in_doubt = in_doubt.or(Some(named)),
                    named => return Some(named),
                }
            }
            // The refusal is about the caller's content.
            Target::InList if is_path => return None,
            _ => {}
        }
    }
    in_doubt
}

impl Named {
    /// `word` is the word of the text that names the parameter; empty for a path. Returns `None` if
    /// the parameter stays.
    fn new(parameter: &'static Parameter, request: &Value, word: &str) -> Option<Self> {
        if parameter.if_refused == IfRefused::Keep {
            return None;
        }
        let mut without = request.clone();
        parameter.remove(&mut without);
        let is_in_doubt = !word.is_empty() && has_word(&without, word);
        Some(Self { parameter, without, is_in_doubt })
    }
}

/// The paths and texts of a refusal.
#[derive(Default)]
struct Said {
    places: Vec<String>,
    text: String,
}

impl Said {
    fn read(&mut self, value: &Value, has_places: bool) {
        match value {
            Value::String(text) => self.text.extend([text, "\n"]),
            Value::Array(values) => values.iter().for_each(|value| self.read(value, has_places)),
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("param" | "field", Value::String(place)) if has_places => {
                            self.places.push(place.clone())
                        }
                        ("loc", Value::Array(path)) if has_places => {
                            let path = path
                                .iter()
                                .map(|step| step.as_str().map_or(step.to_string(), str::to_owned));
                            self.places.push(path.collect::<Vec<_>>().join("."));
                        }
                        (name, member) => self.read(member, has_places && WRAPPERS.contains(&name)),
                    }
                }
            }
            _ => {}
        }
    }
}

/// The meaning of a path or name of a refusal in a request.
#[derive(Debug, Clone, Copy)]
enum Target {
    Parameter(&'static Parameter),
    /// The request itself, one of its groups, or a number: nothing is named.
    Request,
    InList,
    Unknown,
}

impl Target {
    fn find(path: &str, request: &mut Value) -> Self {
        let (mut found, mut is_in_list) = (None, false);
        for step in path.split(|c| !is_letter(c)).filter(|step| !step.is_empty()) {
            let is_meant = |parameter: &&Parameter| {
                parameter.name == step
                    && (parameter.is_in_lists || !is_in_list)
                    && parameter.is_in(request)
            };
            found = PARAMETERS.iter().find(is_meant).or(found);
            is_in_list |= LISTS.contains(&step);
            let is_known = [GROUPS, LISTS, STEPS].iter().any(|steps| steps.contains(&step));
            if !is_known && !step.bytes().all(|byte| byte.is_ascii_digit()) {
                let elsewhere = if is_in_list { Self::InList } else { Self::Unknown };
                return found.map_or(elsewhere, Self::Parameter);
            }
        }
        let whole = if is_in_list { Self::InList } else { Self::Request };
        found.map_or(whole, Self::Parameter)
    }

    fn parameter(&self) -> Option<&'static Parameter> {
        match self {
            Self::Parameter(parameter) => Some(parameter),
            _ => None,
        }
    }
}

/// Returns the words of a text that can be names or paths.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c| !is_letter(c) && !".[]".contains(c));
    words.map(|word| word.trim_matches(['.', '[', ']'])).filter(|word| !word.is_empty())
}

/// Returns whether a value has a word in a text or in a name of a member.
fn has_word(value: &Value, word: &str) -> bool {
    let is_in = |text: &str| {
        let mut places = text.match_indices(word).map(|(at, _)| at);
        places.any(|at| {
            !text[..at].ends_with(is_letter) && !text[at + word.len()..].starts_with(is_letter)
        })
    };
    match value {
        Value::String(text) => is_in(text),
        Value::Array(values) => values.iter().any(|value| has_word(value, word)),
        Value::Object(members) => {
            members.iter().any(|(name, member)| is_in(name) || has_word(member, word))
        }
        _ => false,
    }
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
