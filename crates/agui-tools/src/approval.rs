//! Rules for which calls of a tool need approval.
//!
//! In doubt a call needs approval: if an argument that the rule names is missing, or is an object or an array, or if a
//! path contains `..`. Patterns follow the same principle: a pattern of [`When`](ApprovalRule::When) is searched anywhere
//! in the value; a pattern of [`Unless`](ApprovalRule::Unless) must match the whole value, except at an end that the
//! pattern leaves open by anchoring only the other end with `^` or `$`.

use indexmap::IndexMap;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::Approval;
use agui_protocol::JsonObject;

/// A rule for which calls of a tool need approval.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "ConfiguredRule")]
#[non_exhaustive]
pub enum ApprovalRule {
    /// No call needs approval.
    #[default]
    Never,
    /// Every call needs approval.
    Always,
    /// A call needs approval if any of the named arguments matches its pattern.
    When(Patterns),
    /// A call needs approval unless all of the named arguments match their patterns.
    Unless(Patterns),
}

/// Regular expressions by the names of arguments.
#[derive(Debug, Clone)]
pub struct Patterns(Vec<(String, Regex)>);

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        let texts = |patterns: &Self| -> Vec<_> {
            patterns
                .0
                .iter()
                .map(|(name, pattern)| (name.clone(), pattern.as_str().to_owned()))
                .collect()
        };
        texts(self) == texts(other)
    }
}

/// A rule as the configuration writes it: `"always"`, or `{ unless = { path = "^/tmp/" } }`.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConfiguredRule {
    /// No call needs approval.
    Never,
    /// Every call needs approval.
    Always,
    /// Calls of tools need approval that the MCP server calls destructive or open-world, or does
    /// not describe. Only for servers that you trust.
    Annotations,
    /// Calls need approval in which some pattern matches anywhere in the argument that it is for.
    When(
        #[cfg_attr(feature = "schema", schemars(extend("minProperties" = 1)))]
        IndexMap<String, String>,
    ),
    /// All calls need approval but those in which every pattern matches the argument that it is for. A pattern without
    /// `^` or `$` has to match the whole value.
    Unless(
        #[cfg_attr(feature = "schema", schemars(extend("minProperties" = 1)))]
        IndexMap<String, String>,
    ),
}

/// The form in a configuration, without `annotations`.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for ApprovalRule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ApprovalRule".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = generator.subschema_for::<ConfiguredRule>();
        if let Some(rules) = schema.get_mut("oneOf").and_then(|rules| rules.as_array_mut()) {
            rules.retain(|rule| rule["const"] != "annotations");
        }
        schema
    }
}

impl TryFrom<ConfiguredRule> for ApprovalRule {
    type Error = String;

    fn try_from(rule: ConfiguredRule) -> Result<Self, String> {
        match rule {
            ConfiguredRule::Never => Ok(Self::Never),
            ConfiguredRule::Always => Ok(Self::Always),
            ConfiguredRule::Annotations => {
                Err("only the tools of MCP servers have annotations".to_owned())
            }
            ConfiguredRule::When(patterns) => {
                Self::when(patterns.iter().map(|(name, text)| (&**name, &**text)))
            }
            ConfiguredRule::Unless(patterns) => {
                Self::unless(patterns.iter().map(|(name, text)| (&**name, &**text)))
            }
        }
    }
}

impl ApprovalRule {
    /// A call needs approval if an argument matches, as in `{ amount = "[0-9]{4,}" }`.
    ///
    /// # Errors
    /// Returns a message if a pattern is invalid, or if no pattern is given.
    pub fn when<'a>(
        patterns: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        compile(patterns, str::to_owned).map(Self::When)
    }

    /// A call needs approval unless all named arguments match, as in `{ path = "^/tmp/" }`.
    ///
    /// # Errors
    /// Returns a message if a pattern is invalid, or if no pattern is given.
    pub fn unless<'a>(
        patterns: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        compile(patterns, anchored).map(Self::Unless)
    }

    /// Returns whether a call with these arguments needs approval.
    pub fn decide(&self, arguments: &JsonObject) -> Approval {
        let needed = match self {
            Self::Never => false,
            Self::Always => true,
            Self::When(Patterns(patterns)) => patterns.iter().any(|(name, pattern)| {
                matchable_text(arguments.get(name)).is_none_or(|text| pattern.is_match(&text))
            }),
            Self::Unless(Patterns(patterns)) => !patterns.iter().all(|(name, pattern)| {
                matchable_text(arguments.get(name))
                    .is_some_and(|text| !has_parent_segment(&text) && pattern.is_match(&text))
            }),
        };
        if needed { Approval::Needed } else { Approval::NotNeeded }
    }
}

fn compile<'a>(
    patterns: impl IntoIterator<Item = (&'a str, &'a str)>,
    anchor: impl Fn(&str) -> String,
) -> Result<Patterns, String> {
    let patterns = patterns.into_iter().map(|(name, pattern)| {
        // The pattern must be valid by itself: `a)(?:b` is not, but its anchored form is.
        let compiled = Regex::new(pattern).and_then(|_| Regex::new(&anchor(pattern)));
        compiled.map(|regex| (name.to_owned(), regex)).map_err(|error| {
            let error = error.to_string();
            format!(
                "the pattern of `{name}` is not a regular expression: {}",
                error.lines().last().unwrap_or_default()
            )
        })
    });
    let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
    if patterns.is_empty() {
        return Err("at least one argument is needed".to_owned());
    }
    Ok(Patterns(patterns))
}

/// Anchors all alternatives of a pattern at the ends that its own anchors name; at both ends if it has no anchor.
fn anchored(pattern: &str) -> String {
    let start = pattern.starts_with('^');
    let end = pattern.ends_with('$') && !pattern.ends_with("\\$");
    match (start, end) {
        (true, false) => format!(r"\A(?:{pattern})"),
        (false, true) => format!(r"(?:{pattern})\z"),
        _ => format!(r"\A(?:{pattern})\z"),
    }
}

fn matchable_text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        scalar => Some(scalar.to_string()),
    }
}

fn has_parent_segment(text: &str) -> bool {
    text.split(['/', '\\']).any(|segment| segment == "..")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn needs_approval(rule: &ApprovalRule, arguments: Value) -> bool {
        rule.decide(arguments.as_object().unwrap()) == Approval::Needed
    }

    #[test]
    fn always_and_never_ignore_the_arguments() {
        assert!(needs_approval(&ApprovalRule::Always, json!({})));
        assert!(!needs_approval(&ApprovalRule::Never, json!({ "path": "/etc" })));
    }

    #[test]
    fn unless_exempts_only_arguments_that_clearly_match() {
        let rule = ApprovalRule::unless([("path", "^/tmp/")]).unwrap();
        assert!(!needs_approval(&rule, json!({ "path": "/tmp/a", "other": 1 })));
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
            assert!(needs_approval(&rule, json!({ "path": path })), "{path}");
        }
        assert!(needs_approval(&rule, json!({})));
        assert!(needs_approval(&rule, json!({ "Path": "/tmp/a" })));
        let both = ApprovalRule::unless([("path", "^/tmp/"), ("force", "false")]).unwrap();
        assert!(!needs_approval(&both, json!({ "path": "/tmp/a", "force": false })));
        assert!(needs_approval(&both, json!({ "path": "/tmp/a", "force": true })));
        assert!(needs_approval(&both, json!({ "path": "/tmp/a" })));
    }

    #[test]
    fn a_pattern_without_anchors_must_match_the_whole_value() {
        let amount = ApprovalRule::unless([("amount", "[0-9]{1,3}")]).unwrap();
        assert!(!needs_approval(&amount, json!({ "amount": 999 })));
        for amount_of in [json!(1000), json!(-5), json!(1.5), json!("999\n")] {
            assert!(needs_approval(&amount, json!({ "amount": amount_of })), "{amount_of}");
        }
        let either = ApprovalRule::unless([("to", "anna|bob")]).unwrap();
        assert!(
            !needs_approval(&either, json!({ "to": "bob" }))
                && needs_approval(&either, json!({ "to": "bobby" }))
        );
        let start = ApprovalRule::unless([("to", "^anna|bob")]).unwrap();
        assert!(
            needs_approval(&start, json!({ "to": "not bob" }))
                && !needs_approval(&start, json!({ "to": "bobby" }))
        );
        let end = ApprovalRule::unless([("to", "@example\\.com$")]).unwrap();
        assert!(
            !needs_approval(&end, json!({ "to": "a@example.com" }))
                && needs_approval(&end, json!({ "to": "a@example.com.evil" }))
        );
        assert!(needs_approval(&end, json!({ "to": "a@example.com\n" })));
        let price = ApprovalRule::unless([("price", "5\\$")]).unwrap();
        assert!(
            !needs_approval(&price, json!({ "price": "5$" }))
                && needs_approval(&price, json!({ "price": "15$" }))
        );
    }

    #[test]
    fn when_covers_matching_and_unclear_arguments() {
        let rule = ApprovalRule::when([("command", "rm|sudo"), ("amount", "[0-9]{4,}")]).unwrap();
        assert!(!needs_approval(&rule, json!({ "command": "ls", "amount": 5 })));
        assert!(needs_approval(&rule, json!({ "command": "please rm -rf /", "amount": 5 })));
        assert!(needs_approval(&rule, json!({ "command": "ls", "amount": 5000 })));
        assert!(needs_approval(&rule, json!({ "command": "ls" })));
        assert!(needs_approval(&rule, json!({ "command": ["ls"], "amount": 5 })));
    }

    #[test]
    fn an_error_names_the_argument_of_an_invalid_pattern() {
        let error = ApprovalRule::when([("path", "(")]).unwrap_err();
        assert_eq!(
            error,
            "the pattern of `path` is not a regular expression: error: unclosed group"
        );
        assert!(ApprovalRule::unless([("path", "a)(?:b")]).is_err());
        assert!(ApprovalRule::unless([]).is_err());
    }
}
