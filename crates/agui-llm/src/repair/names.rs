//! Finds the parameter that a refusal names.
//!
//! A path in the refusal names it for certain. Without a path, the text of the refusal is searched.
//! A refusal may quote the texts of callers, their tools' names and the members of their schemas.
//! So a name is in doubt if it also occurs elsewhere in the request.

use std::collections::HashSet;

use serde_json::Value;

use super::parameters::{IfRefused, PARAMETERS, Parameter};
use crate::{form::GROUPS, refusal::ProviderRefusal};

/// The lists of a request with the content of callers.
const LISTS: &[&str] = &["tools", "messages", "contents", "input", "system"];
/// Further steps in the paths of parameters, beside numbers and the names of groups and lists.
const STEPS: &[&str] = &["body", "generation_config", "custom", "function", "content"];
/// The members of a refusal that lead to its paths. Other members can repeat the request.
const WRAPPERS: &[&str] =
    &["error", "message", "detail", "details", "errors", "fieldViolations", "field_violations"];

/// The words of refusals of a parameter, in lower case. Refusals of a value, such as
/// `must be at most 2`, have none of them.
const REFUSALS: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "unknown",
    "unrecognized",
    "extra inputs are not permitted",
    "extra_forbidden",
    "deprecated",
    ONLY_WITH_ANOTHER,
    "cannot both be specified",
    "may only be set to",
    // https://github.com/XCNXNXNX/dsh-portable-tavern/issues/1
    "allowed for this model",
];
/// The words of a refusal that does not apply to later requests.
const ONLY_WITH_ANOTHER: &str = "only allowed when";
/// The words of refusals of a value.
const VALUES: &[&str] = &[
    "maximum",
    "minimum",
    "at most",
    "at least",
    "between",
    "greater than",
    "less than",
    "<=",
    ">=",
];

/// What a refusal names of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Naming {
    /// Parameters that may be left out or renamed; at least one.
    Parameters { named: Vec<&'static Parameter>, is_lasting: bool },
    /// A parameter that may be left out, whose name the caller may have written.
    InDoubt(&'static Parameter),
    /// A tool, or a parameter or value that no form changes.
    Fixed,
    /// The conversation, or nothing that is known.
    Nothing,
}

/// Returns the parameters of a request that a refusal names. A path such as
/// `output_config.effort` names its last step.
pub(super) fn named(refusal: &ProviderRefusal) -> Naming {
    let (mut said, mut request) = (Said::default(), refusal.sent.clone());
    match serde_json::from_str(&refusal.body) {
        Ok(json) => said.read(&json, true),
        Err(_) => refusal.body.clone_into(&mut said.text),
    }
    let lower = said.text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let targets: Vec<_> =
        said.places.iter().map(|place| Target::find(place, &mut request)).collect();
    let parameters: Vec<_> = targets.iter().filter_map(Target::parameter).collect();
    let is_lasting = !lower.contains(ONLY_WITH_ANOTHER);
    if !parameters.is_empty() {
        let is_fixed = parameters.iter().any(|parameter| parameter.is_kept(&refusal.fixed));
        return match is_fixed || !has(REFUSALS) && has(VALUES) {
            true => Naming::Fixed,
            false => Naming::Parameters { named: parameters, is_lasting },
        };
    }
    if targets.iter().any(|target| matches!(target, Target::InTools)) {
        return Naming::Fixed;
    }
    let is_elsewhere = targets.iter().any(|target| !matches!(target, Target::Request));
    if is_elsewhere || !has(REFUSALS) {
        return Naming::Nothing;
    }
    named_in_text(&said.text, &mut request, &refusal.fixed, is_lasting)
}

/// Returns the parameters that the text of a refusal names. Names in one list belong together.
fn named_in_text(text: &str, request: &mut Value, fixed: &[String], is_lasting: bool) -> Naming {
    let all: Vec<_> = words(text).collect();
    let is_path = |word: &&&str| word.contains(['.', '[']);
    let (paths, names): (Vec<_>, Vec<_>) = (0..all.len()).partition(|at| is_path(&&all[*at]));
    // A refusal can repeat a caller's text with a thousand occurrences of the name, and each check
    // reads the request.
    let (mut in_doubt, mut tried) = (None, HashSet::new());
    for at in paths.into_iter().chain(names) {
        match Target::find(all[at], request) {
            Target::Parameter(parameter) if tried.insert(parameter.name) => {
                if parameter.is_kept(fixed) {
                    return Naming::Fixed;
                }
                if !parameter.may_be_written_by_caller(all[at], request) {
                    let mut named = vec![parameter];
                    for word in all[at + 1..].iter().filter(|word| !matches!(**word, "and" | "or"))
                    {
                        let Target::Parameter(next) = Target::find(word, request) else { break };
                        let is_certain =
                            !next.is_kept(fixed) && !next.may_be_written_by_caller(word, request);
                        if is_certain && tried.insert(next.name) {
                            named.push(next);
                        }
                    }
                    return Naming::Parameters { named, is_lasting };
                }
                in_doubt = in_doubt.or(Some(parameter));
            }
            // The refusal is about the caller's content.
            Target::InTools if is_path(&&all[at]) => return Naming::Fixed,
            Target::InConversation if is_path(&&all[at]) => return Naming::Nothing,
            _ => {}
        }
    }
    in_doubt.map_or(Naming::Nothing, Naming::InDoubt)
}

impl Parameter {
    fn is_kept(&self, fixed: &[String]) -> bool {
        self.if_refused == IfRefused::Keep || fixed.iter().any(|name| name == self.name)
    }

    /// Returns whether a word that names the parameter also occurs elsewhere in the request.
    fn may_be_written_by_caller(&self, word: &str, request: &Value) -> bool {
        let mut without = request.clone();
        self.remove(&mut without);
        has_word(&without, word)
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
    InTools,
    InConversation,
    Unknown,
}

impl Target {
    fn find(path: &str, request: &mut Value) -> Self {
        let (mut found, mut list) = (None, None);
        let is_path = path.contains(['.', '[']);
        for step in path.split(|c| !is_letter(c)).filter(|step| !step.is_empty()) {
            let is_meant = |parameter: &&Parameter| {
                parameter.name == step
                    && (parameter.is_in_lists || list.is_none())
                    && (is_path || !parameter.is_common_word)
                    && parameter.is_in(request)
            };
            found = PARAMETERS.iter().find(is_meant).or(found);
            list = list.or(LISTS.iter().find(|list| **list == step));
            let is_known = [GROUPS, LISTS, STEPS].iter().any(|steps| steps.contains(&step));
            if !is_known && !step.bytes().all(|byte| byte.is_ascii_digit()) {
                return found.map_or(Self::of_list(list, Self::Unknown), Self::Parameter);
            }
        }
        found.map_or(Self::of_list(list, Self::Request), Self::Parameter)
    }

    fn of_list(list: Option<&&str>, otherwise: Self) -> Self {
        match list {
            Some(&"tools") => Self::InTools,
            Some(_) => Self::InConversation,
            None => otherwise,
        }
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

#[cfg(test)]
mod tests;
