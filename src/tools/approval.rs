//! When somebody has to agree to a call: always, never, or as its arguments say.
//!
//! What is unclear needs approval: an argument that is missing, one that is an object or an array, a path that climbs
//! with `..`. Patterns err on the same side. One that *asks* is looked for anywhere in the value; one that *spares* the
//! question has to match the whole value, unless it says with its own `^` or `$` that it speaks of one end only.

use indexmap::IndexMap;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::Approval;
use crate::protocol::JsonObject;

/// When somebody has to agree to a call.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "ConfiguredRule")]
pub enum ApprovalRule {
    /// Nobody is ever asked.
    #[default]
    Never,
    /// Somebody is always asked.
    Always,
    /// Somebody is asked if any of the arguments matches its pattern.
    When(Patterns),
    /// Somebody is asked unless every one of the arguments matches its pattern.
    Unless(Patterns),
}

/// Patterns of arguments, by the arguments' names.
#[derive(Debug, Clone)]
pub struct Patterns(Vec<(String, Regex)>);

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        let texts = |patterns: &Self| -> Vec<_> {
            patterns.0.iter().map(|(name, pattern)| (name.clone(), pattern.as_str().to_owned())).collect()
        };
        texts(self) == texts(other)
    }
}

/// A rule as the configuration writes it: `"always"`, or `{ unless = { path = "^/tmp/" } }`.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ConfiguredRule {
    Never,
    Always,
    When(IndexMap<String, String>),
    Unless(IndexMap<String, String>),
}

impl TryFrom<ConfiguredRule> for ApprovalRule {
    type Error = String;

    fn try_from(rule: ConfiguredRule) -> Result<Self, String> {
        match rule {
            ConfiguredRule::Never => Ok(Self::Never),
            ConfiguredRule::Always => Ok(Self::Always),
            ConfiguredRule::When(patterns) => Self::when(patterns.iter().map(|(name, text)| (&**name, &**text))),
            ConfiguredRule::Unless(patterns) => Self::unless(patterns.iter().map(|(name, text)| (&**name, &**text))),
        }
    }
}

impl ApprovalRule {
    /// Asks if an argument matches: `{ amount = "[0-9]{4,}" }`. The pattern is looked for anywhere in the value.
    ///
    /// # Errors
    /// What is wrong with a pattern.
    pub fn when<'a>(patterns: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        compile(patterns, str::to_owned).map(Self::When)
    }

    /// Spares the question if every argument named matches: `{ path = "^/tmp/" }`. A pattern without an anchor of its
    /// own has to match the whole value.
    ///
    /// # Errors
    /// What is wrong with a pattern.
    pub fn unless<'a>(patterns: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        compile(patterns, anchored).map(Self::Unless)
    }

    /// Whether somebody has to agree to a call with these arguments.
    pub fn decide(&self, arguments: &JsonObject) -> Approval {
        let needed = match self {
            Self::Never => false,
            Self::Always => true,
            Self::When(Patterns(patterns)) => patterns.iter().any(|(name, pattern)| {
                // Unclear counts as a match.
                readable(arguments.get(name)).is_none_or(|text| pattern.is_match(&text))
            }),
            Self::Unless(Patterns(patterns)) => !patterns.iter().all(|(name, pattern)| {
                readable(arguments.get(name)).is_some_and(|text| !climbs(&text) && pattern.is_match(&text))
            }),
        };
        if needed { Approval::Needed } else { Approval::NotNeeded }
    }
}

fn compile<'a>(
    patterns: impl IntoIterator<Item = (&'a str, &'a str)>,
    form: impl Fn(&str) -> String,
) -> Result<Patterns, String> {
    let patterns = patterns.into_iter().map(|(name, pattern)| {
        let compiled = Regex::new(pattern).and_then(|_| Regex::new(&form(pattern)));
        compiled.map(|regex| (name.to_owned(), regex)).map_err(|error| {
            let error = error.to_string();
            format!("the pattern of `{name}` is no regular expression: {}", error.lines().last().unwrap_or_default())
        })
    });
    let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
    if patterns.is_empty() {
        return Err("at least one argument is needed".to_owned());
    }
    Ok(Patterns(patterns))
}

/// A pattern that binds as its own anchors say, all its alternatives alike; both ends if it has none.
fn anchored(pattern: &str) -> String {
    let start = pattern.starts_with('^');
    let end = pattern.ends_with('$') && !pattern.ends_with("\\$");
    match (start, end) {
        (true, false) => format!(r"\A(?:{pattern})"),
        (false, true) => format!(r"(?:{pattern})\z"),
        _ => format!(r"\A(?:{pattern})\z"),
    }
}

/// The text that patterns are matched on: a string's own, the JSON of a number, a boolean or null.
fn readable(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        plain => Some(plain.to_string()),
    }
}

/// Whether a value, read as a path, is not where it says.
fn climbs(text: &str) -> bool {
    text.split(['/', '\\']).any(|segment| segment == "..")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asks(rule: &ApprovalRule, arguments: Value) -> bool {
        rule.decide(arguments.as_object().unwrap()) == Approval::Needed
    }

    #[test]
    fn always_and_never_look_at_nothing() {
        assert!(asks(&ApprovalRule::Always, json!({})));
        assert!(!asks(&ApprovalRule::Never, json!({ "path": "/etc" })));
    }

    #[test]
    fn unless_spares_only_what_is_clear() {
        let rule = ApprovalRule::unless([("path", "^/tmp/")]).unwrap();
        assert!(!asks(&rule, json!({ "path": "/tmp/a", "other": 1 })));
        for path in [
            json!("/etc/passwd"),
            json!("x/tmp/"),
            json!("/tmp"),
            json!("/tmp/../etc"),
            json!("/tmp/a\\..\\b"),
            json!("\n/tmp/a"),
            json!(["/tmp/a"]),
            json!({ "p": "/tmp/" }),
            json!(null),
            json!(7),
        ] {
            assert!(asks(&rule, json!({ "path": path })), "{path}");
        }
        assert!(asks(&rule, json!({})));
        assert!(asks(&rule, json!({ "Path": "/tmp/a" })));
        let both = ApprovalRule::unless([("path", "^/tmp/"), ("force", "false")]).unwrap();
        assert!(!asks(&both, json!({ "path": "/tmp/a", "force": false })));
        assert!(asks(&both, json!({ "path": "/tmp/a", "force": true })));
        assert!(asks(&both, json!({ "path": "/tmp/a" })));
    }

    #[test]
    fn a_pattern_without_anchors_binds_the_whole_value() {
        let amount = ApprovalRule::unless([("amount", "[0-9]{1,3}")]).unwrap();
        assert!(!asks(&amount, json!({ "amount": 999 })));
        for amount_of in [json!(1000), json!(-5), json!(1.5), json!("999\n")] {
            assert!(asks(&amount, json!({ "amount": amount_of })), "{amount_of}");
        }
        let either = ApprovalRule::unless([("to", "anna|bob")]).unwrap();
        assert!(!asks(&either, json!({ "to": "bob" })) && asks(&either, json!({ "to": "bobby" })));
        let start = ApprovalRule::unless([("to", "^anna|bob")]).unwrap();
        assert!(asks(&start, json!({ "to": "not bob" })) && !asks(&start, json!({ "to": "bobby" })));
        let end = ApprovalRule::unless([("to", "@example\\.com$")]).unwrap();
        assert!(!asks(&end, json!({ "to": "a@example.com" })) && asks(&end, json!({ "to": "a@example.com.evil" })));
        assert!(asks(&end, json!({ "to": "a@example.com\n" })));
        let price = ApprovalRule::unless([("price", "5\\$")]).unwrap();
        assert!(!asks(&price, json!({ "price": "5$" })) && asks(&price, json!({ "price": "15$" })));
    }

    #[test]
    fn when_asks_for_what_matches_and_for_what_is_unclear() {
        let rule = ApprovalRule::when([("command", "rm|sudo"), ("amount", "[0-9]{4,}")]).unwrap();
        assert!(!asks(&rule, json!({ "command": "ls", "amount": 5 })));
        assert!(asks(&rule, json!({ "command": "please rm -rf /", "amount": 5 })));
        assert!(asks(&rule, json!({ "command": "ls", "amount": 5000 })));
        assert!(asks(&rule, json!({ "command": "ls" })));
        assert!(asks(&rule, json!({ "command": ["ls"], "amount": 5 })));
    }

    #[test]
    fn wrong_patterns_are_refused_by_their_argument() {
        let error = ApprovalRule::when([("path", "(")]).unwrap_err();
        assert_eq!(error, "the pattern of `path` is no regular expression: error: unclosed group");
        // What would be one only between our brackets is none.
        assert!(ApprovalRule::unless([("path", "a)(?:b")]).is_err());
        assert!(ApprovalRule::unless([]).is_err());
    }
}
