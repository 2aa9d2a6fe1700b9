//! Checks the arguments of a call against the tool's JSON Schema, with messages from which a model can correct them.
//!
//! Neither side is trusted: a schema can come from an MCP server, and arguments come from a model that reads texts of
//! strangers. So sizes, depths and the backtracking of patterns are limited, and no `$ref` is fetched.

use jsonschema::{PatternOptions, error::ValidationErrorKind};
use serde_json::Value;

use crate::protocol::JsonObject;

const MAX_SCHEMA_BYTES: usize = 256 * 1024;
const MAX_DEPTH: usize = 64;
const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;
const MAX_PROBLEMS: usize = 5;
const MAX_PROBLEM_CHARS: usize = 240;
/// The backtracking limit of a pattern; it takes some milliseconds to reach.
const MAX_BACKTRACKS: usize = 50_000;

/// A compiled schema of a tool's arguments.
#[derive(Debug)]
pub struct Validator {
    compiled: jsonschema::Validator,
}

impl Validator {
    /// Compiles a schema, which must describe an object.
    ///
    /// # Errors
    /// The reason why the schema cannot be used.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let Value::Object(object) = schema else { return Err("a schema of arguments is a JSON object".to_owned()) };
        if object.get("type").is_some_and(|kind| kind != "object") {
            return Err("arguments are an object: the schema needs \"type\": \"object\"".to_owned());
        }
        if depth(schema) > MAX_DEPTH {
            return Err(format!("the schema nests deeper than {MAX_DEPTH} levels"));
        }
        if schema.to_string().len() > MAX_SCHEMA_BYTES {
            return Err(format!("the schema is longer than {MAX_SCHEMA_BYTES} bytes"));
        }
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS);
        let compiled =
            jsonschema::options().offline().with_pattern_options(patterns).build(schema).map_err(|error| {
                shorten(&format!("{}: {}", path_text(error.instance_path().as_str()), error.masked()))
            })?;
        Ok(Self { compiled })
    }

    /// Parses and checks the arguments that a model wrote. An empty text means no arguments.
    ///
    /// # Errors
    /// A message for the model that lists the problems.
    pub fn check(&self, text: &str) -> Result<JsonObject, String> {
        if text.len() > MAX_ARGUMENTS_BYTES {
            return Err(format!("The arguments are longer than {MAX_ARGUMENTS_BYTES} bytes."));
        }
        let arguments = if text.trim().is_empty() {
            Value::Object(JsonObject::new())
        } else {
            // The parser refuses more than 128 levels.
            serde_json::from_str(text)
                .map_err(|error| shorten(&format!("The arguments are not valid JSON: {error}")))?
        };
        if !arguments.is_object() {
            return Err(format!("The arguments have to be a JSON object, not {}.", type_name(&arguments)));
        }
        let mut problems: Vec<String> = Vec::new();
        let mut more = false;
        for error in self.compiled.iter_errors(&arguments) {
            if problems.len() == MAX_PROBLEMS {
                more = true;
                break;
            }
            let what = match error.kind() {
                // The library's message repeats the whole value.
                ValidationErrorKind::AdditionalProperties { unexpected } => {
                    format!("there is no argument {}", unexpected.join(", "))
                }
                _ => error.masked_with("the value").to_string(),
            };
            problems.push(shorten(&format!("{}: {what}", path_text(error.instance_path().as_str()))));
        }
        match (arguments, problems.is_empty()) {
            (Value::Object(arguments), true) => Ok(arguments),
            _ => {
                let rest = if more { "\n- and more" } else { "" };
                Err(format!("The arguments do not fit the tool's schema:\n- {}{rest}", problems.join("\n- ")))
            }
        }
    }
}

fn path_text(pointer: &str) -> &str {
    if pointer.is_empty() { "(root)" } else { pointer }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Returns the nesting depth of a value, without recursion, because the depth is not limited yet.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(members) => open.extend(members.values().map(|member| (member, level + 1))),
            _ => {}
        }
    }
    deepest
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_PROBLEM_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn weather() -> Validator {
        Validator::new(&json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "minLength": 1 },
                "days": { "type": "integer", "minimum": 1, "maximum": 7 },
                "at": { "type": "object", "properties": { "hour": { "type": "integer" } } }
            },
            "required": ["city"],
            "additionalProperties": false
        }))
        .unwrap()
    }

    #[test]
    fn valid_arguments_are_parsed() {
        assert_eq!(weather().check(r#"{"city":"Köln","days":2}"#).unwrap()["city"], "Köln");
        let nothing = Validator::new(&json!({})).unwrap();
        assert!(nothing.check("").unwrap().is_empty() && nothing.check(" \n").unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_place_and_the_problem() {
        for (text, expected) in [
            ("", "(root): \"city\" is a required property"),
            (r#"{"city":"#, "not valid JSON"),
            ("[1]", "have to be a JSON object, not an array"),
            ("null", "not null"),
            (r#"{"city":"x","days":9}"#, "/days: the value is greater than the maximum of 7"),
            (r#"{"city":"x","at":{"hour":"9"}}"#, "/at/hour: the value is not of type \"integer\""),
            (r#"{"city":"x","sql":"'; --","b":1}"#, "(root): there is no argument sql, b"),
            (r#"{"city":""}"#, "/city: the value is shorter than 1 character"),
        ] {
            let error = weather().check(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn errors_are_short_for_any_arguments() {
        let schema = json!({ "properties": {}, "additionalProperties": { "type": "integer" } });
        let validator = Validator::new(&schema).unwrap();
        let many: JsonObject = (0..50).map(|n| (format!("{n}{}", "k".repeat(1000)), json!("v".repeat(1000)))).collect();
        let error = validator.check(&Value::Object(many).to_string()).unwrap_err();
        assert!(error.len() < 2000 && error.ends_with("- and more"), "{error}");
        assert!(validator.check(&" ".repeat(MAX_ARGUMENTS_BYTES + 1)).unwrap_err().contains("longer than"));
        let deep = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert!(validator.check(&deep).unwrap_err().contains("recursion limit"));
    }

    #[test]
    fn unusable_schemas_are_refused_with_the_reason() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "not": deep });
        }
        for (schema, expected) in [
            (json!([]), "JSON object"),
            (json!({ "type": "string" }), "\"type\": \"object\""),
            (json!({ "type": ["object", "null"] }), "\"type\": \"object\""),
            (json!({ "properties": { "a": { "type": "strange" } } }), "/properties/a/type"),
            (json!({ "properties": { "a": { "pattern": "(" } } }), "/properties/a/pattern"),
            (json!({ "properties": { "a": { "$ref": "http://127.0.0.1:1/schema.json" } } }), "127.0.0.1"),
            (json!({ "properties": { "a": { "$ref": "file:///etc/passwd" } } }), "/etc/passwd"),
            (json!({ "description": "x".repeat(MAX_SCHEMA_BYTES) }), "longer than"),
            (deep, "deeper than 64"),
        ] {
            let error = Validator::new(&schema).unwrap_err();
            assert!(error.contains(expected) && error.len() < 1200, "{error}");
        }
    }

    #[test]
    fn recursive_references_within_a_schema_are_allowed() {
        let tree = json!({ "properties": { "left": { "$ref": "#" } }, "additionalProperties": false });
        let validator = Validator::new(&tree).unwrap();
        validator.check(r#"{"left":{"left":{}}}"#).unwrap();
        assert!(validator.check(r#"{"left":{"right":{}}}"#).unwrap_err().contains("/left: there is no argument right"));
        // A schema that only refers to itself must not hang or overflow the stack.
        let _ = Validator::new(&json!({ "$ref": "#" })).map(|circle| circle.check("{}"));
    }

    #[test]
    fn backtracking_of_patterns_is_limited() {
        let schema = json!({ "properties": { "a": { "pattern": "^(?=(a+)+$)(a|a)+$" } } });
        let begin = std::time::Instant::now();
        let _ = Validator::new(&schema).unwrap().check(&json!({ "a": format!("{}!", "a".repeat(5000)) }).to_string());
        assert!(begin.elapsed().as_secs() < 5);
    }
}
