//! Forms for JSON Schemas: the questions to ask for a value, one for each member.
//!
//! Objects are asked for member by member. A schema that has no question of its own is asked for as JSON. The caller
//! checks whether the value fits the schema as a whole.

use serde_json::{Number, Value, json};

use crate::server::cli::printable::{excerpt, printable_line};
use agui_base::text::PARAGRAPH_CHARS;
use agui_protocol::approval::ApprovalDecision;

/// Deeper objects are asked for as JSON.
const MAX_DEPTH: usize = 4;
/// Objects with more members are asked for as JSON.
const MAX_FIELDS: usize = 50;
/// Values with more choices are entered as texts or JSON.
const MAX_CHOICES: usize = 100;

/// A question for one value of the form.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// The names of the members that lead to the value; empty for the whole value.
    pub(super) path: Vec<String>,
    schema: Value,
    is_required: bool,
    kind: FieldKind,
}

#[derive(Debug, Clone, PartialEq)]
enum FieldKind {
    /// Labels and values.
    Choice(Vec<(String, Value)>),
    Boolean,
    Integer,
    Number,
    Text,
    Email,
    Url,
    Json,
}

/// Returns the questions for a value of a schema.
pub(super) fn fields(schema: &Value) -> Vec<Field> {
    let mut fields = Vec::new();
    add_fields(schema, Vec::new(), true, &mut fields);
    if fields.len() > MAX_FIELDS {
        fields = vec![Field {
            path: Vec::new(),
            schema: schema.clone(),
            is_required: true,
            kind: FieldKind::Json,
        }];
    }
    fields
}

fn add_fields(schema: &Value, path: Vec<String>, is_required: bool, fields: &mut Vec<Field>) {
    if fields.len() > MAX_FIELDS {
        return;
    }
    let members =
        schema.get("properties").and_then(Value::as_object).filter(|members| !members.is_empty());
    match members {
        Some(members)
            if path.len() < MAX_DEPTH && type_of(schema).is_none_or(|name| name == "object") =>
        {
            let required = schema.get("required").and_then(Value::as_array);
            for (name, member) in members {
                let is_named = required
                    .is_some_and(|names| names.iter().any(|required| required == name.as_str()));
                let path = path.iter().cloned().chain([name.clone()]).collect();
                add_fields(member, path, is_required && is_named, fields);
            }
        }
        _ => {
            fields.push(Field { path, schema: schema.clone(), is_required, kind: kind_of(schema) })
        }
    }
}

fn kind_of(schema: &Value) -> FieldKind {
    if let Some(choices) =
        choices_of(schema).filter(|choices| (1..=MAX_CHOICES).contains(&choices.len()))
    {
        return FieldKind::Choice(choices);
    }
    match type_of(schema) {
        Some("boolean") => FieldKind::Boolean,
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        // The formats that the playground checks.
        Some("string") => match schema.get("format").and_then(Value::as_str) {
            Some("email") => FieldKind::Email,
            Some("uri") => FieldKind::Url,
            _ => FieldKind::Text,
        },
        _ => FieldKind::Json,
    }
}

/// Returns the values of `enum`, or of alternatives that are constants, which may have titles.
fn choices_of(schema: &Value) -> Option<Vec<(String, Value)>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().map(|value| (plain_text(value), value.clone())).collect());
    }
    let alternatives = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let choice = |alternative: &Value| {
        let value = alternative.get("const")?;
        let title = alternative.get("title").and_then(Value::as_str);
        Some((title.map_or_else(|| plain_text(value), str::to_owned), value.clone()))
    };
    alternatives.iter().map(choice).collect()
}

/// Returns the type of a schema; of several, the first one that is not `null`.
fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(names) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        name => name.as_str(),
    }
}

/// Returns a text as it is, and another value as JSON.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Field {
    /// Returns what to show before the prompt: the description and the choices.
    pub(super) fn explanation(&self) -> Vec<String> {
        let description = self.schema.get("description").and_then(Value::as_str);
        let mut lines: Vec<_> =
            description.map(|text| excerpt(text, PARAGRAPH_CHARS)).into_iter().collect();
        if let FieldKind::Choice(choices) = &self.kind {
            lines.extend(
                (1..)
                    .zip(choices)
                    .map(|(number, (label, _))| format!("  {number}. {}", printable_line(label))),
            );
        }
        lines
    }

    pub(super) fn prompt(&self) -> String {
        let name = match (self.schema.get("title").and_then(Value::as_str), self.path.is_empty()) {
            (Some(title), _) => printable_line(title),
            (None, true) => "answer".to_owned(),
            (None, false) => printable_line(&self.path.join(".")),
        };
        let kind = match &self.kind {
            FieldKind::Choice(choices) => format!("1 to {}", choices.len()),
            FieldKind::Boolean => "yes or no".to_owned(),
            FieldKind::Integer => "whole number".to_owned(),
            FieldKind::Number => "number".to_owned(),
            FieldKind::Text => "text".to_owned(),
            FieldKind::Email => "e-mail address".to_owned(),
            FieldKind::Url => "URL".to_owned(),
            FieldKind::Json => "JSON".to_owned(),
        };
        let empty = match (self.schema.get("default"), self.is_required) {
            (Some(default), _) => format!("; Enter for {}", printable_line(&plain_text(default))),
            (None, true) => String::new(),
            (None, false) => "; Enter for none".to_owned(),
        };
        format!("{name} ({kind}{empty}): ")
    }

    /// Reads a reply; `None` leaves the value out. The error is for the person who replies.
    pub(super) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        let text = line.trim();
        if text.is_empty() {
            return match (self.schema.get("default"), self.is_required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("this value is needed".to_owned()),
            };
        }
        let value = match &self.kind {
            FieldKind::Choice(choices) => {
                let numbered = text
                    .parse::<usize>()
                    .ok()
                    .and_then(|number| choices.get(number.checked_sub(1)?));
                // A label may look like a number; the number in the list comes first.
                let chosen = numbered.or_else(|| choices.iter().find(|(label, _)| label == text));
                chosen
                    .map(|(_, value)| value.clone())
                    .ok_or("expected the number of a choice, or its text")?
            }
            FieldKind::Boolean => read_yes_or_no(text).ok_or("expected yes or no")?.into(),
            FieldKind::Integer => {
                text.parse::<i64>().map_err(|_| "expected a whole number, such as 3")?.into()
            }
            FieldKind::Number => {
                text.parse::<Number>().map_err(|_| "expected a number, such as 3 or 2.5")?.into()
            }
            FieldKind::Text => line.into(),
            FieldKind::Email => formatted(text, "email")
                .ok_or("expected an e-mail address, such as ada@example.com")?,
            FieldKind::Url => {
                formatted(text, "uri").ok_or("expected a URL, such as https://example.com")?
            }
            FieldKind::Json => {
                serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?
            }
        };
        Ok(Some(value))
    }
}

/// Returns a text that has a format of JSON Schema.
fn formatted(text: &str, format: &str) -> Option<Value> {
    let schema = jsonschema::options()
        .should_validate_formats(true)
        .build(&json!({ "format": format }))
        .ok()?;
    Some(text.into()).filter(|value| schema.is_valid(value))
}

/// Reads a yes or a no, in a word or a letter, in English or Chinese.
pub(super) fn read_yes_or_no(text: &str) -> Option<bool> {
    match (text.to_ascii_lowercase().as_str(), ApprovalDecision::from_text(text)) {
        ("y" | "true", _) | (_, ApprovalDecision::Approved { .. }) => Some(true),
        ("n" | "false", _) | (_, ApprovalDecision::Declined { .. }) => Some(false),
        _ => None,
    }
}

/// Puts a value into a form's reply, in objects that are made as needed.
pub(super) fn insert(reply: &mut Value, path: &[String], value: Value) {
    let Some((name, rest)) = path.split_first() else {
        *reply = value;
        return;
    };
    if !reply.is_object() {
        *reply = Value::Object(serde_json::Map::new());
    }
    if let Some(members) = reply.as_object_mut() {
        insert(members.entry(name).or_insert(Value::Null), rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(schema: &Value, lines: &[&str]) -> Value {
        let fields = fields(schema);
        assert_eq!(fields.len(), lines.len(), "{fields:?}");
        let mut reply = json!({});
        for (field, line) in fields.iter().zip(lines) {
            if let Some(value) = field.read(line).unwrap() {
                insert(&mut reply, &field.path, value);
            }
        }
        reply
    }

    #[test]
    fn each_kind_of_schema_has_its_question() {
        for (schema, line, expected) in [
            (json!({ "enum": ["red", "green", 3] }), "2", json!("green")),
            (json!({ "enum": ["red", "green", 3] }), "red", json!("red")),
            (
                json!({ "oneOf": [{ "const": "s", "title": "Small" }, { "const": "l" }] }),
                "Small",
                json!("s"),
            ),
            (json!({ "type": "boolean" }), "y", json!(true)),
            (json!({ "type": ["null", "boolean"] }), "No", json!(false)),
            (json!({ "type": "integer" }), "-3", json!(-3)),
            (json!({ "type": "number" }), "2.5", json!(2.5)),
            (json!({ "type": "string" }), " spaces stay", json!(" spaces stay")),
            (
                json!({ "type": "string", "format": "email" }),
                " ada@example.com",
                json!("ada@example.com"),
            ),
            (
                json!({ "type": "string", "format": "uri" }),
                "mailto:ada@example.com",
                json!("mailto:ada@example.com"),
            ),
            (json!({ "type": "string", "format": "time" }), "noon", json!("noon")),
            (json!({ "type": "string", "default": "usual" }), "", json!("usual")),
            (json!({ "type": "array" }), "[1, 2]", json!([1, 2])),
            (json!({ "$ref": "#/$defs/x" }), "{\"a\": 1}", json!({ "a": 1 })),
        ] {
            assert_eq!(answered(&schema, &[line]), expected, "{schema}");
        }
    }

    #[test]
    fn objects_are_asked_for_member_by_member() {
        let schema = json!({
            "type": "object",
            "properties": {
                "size": { "enum": ["s", "l"] },
                "to": { "type": "object", "properties": { "city": { "type": "string" }, "zip": { "type": "integer" } } },
                "note": { "type": "string" },
            },
            "required": ["size"],
        });
        assert_eq!(
            answered(&schema, &["2", "Paris", "", ""]),
            json!({ "size": "l", "to": { "city": "Paris" } })
        );
        assert_eq!(answered(&schema, &["s", "", "", "hi"]), json!({ "size": "s", "note": "hi" }));
        let prompts: Vec<_> = fields(&schema).iter().map(Field::prompt).collect();
        assert_eq!(prompts[..2], ["size (1 to 2): ", "to.city (text; Enter for none): "]);
        assert_eq!(fields(&schema)[0].explanation(), ["  1. s", "  2. l"]);
    }

    #[test]
    fn wrong_answers_are_refused_with_what_is_expected() {
        for (schema, line, expected) in [
            (json!({ "enum": ["red"] }), "2", "expected the number of a choice, or its text"),
            (json!({ "enum": ["red"] }), "0", "expected the number of a choice, or its text"),
            (json!({ "type": "boolean" }), "perhaps", "expected yes or no"),
            (json!({ "type": "integer" }), "2.5", "expected a whole number, such as 3"),
            (json!({ "type": "number" }), "NaN", "expected a number, such as 3 or 2.5"),
            (json!({ "type": "string" }), " ", "this value is needed"),
            (
                json!({ "type": "string", "format": "email" }),
                "ada",
                "expected an e-mail address, such as ada@example.com",
            ),
            (
                json!({ "type": "string", "format": "uri" }),
                "example.com",
                "expected a URL, such as https://example.com",
            ),
        ] {
            assert_eq!(fields(&schema)[0].read(line), Err(expected.to_owned()), "{schema} {line}");
        }
        assert!(fields(&json!({}))[0].read("{").unwrap_err().starts_with("not JSON: "));
    }

    #[test]
    fn large_and_deep_objects_are_asked_for_as_json() {
        let members: serde_json::Map<_, _> =
            (0..1000).map(|number| (format!("m{number}"), json!({ "type": "string" }))).collect();
        let large = fields(&json!({ "properties": members }));
        assert_eq!((large.len(), &large[0].kind), (1, &FieldKind::Json));
        let deep = (0..10)
            .fold(json!({ "type": "string" }), |inner, _| json!({ "properties": { "a": inner } }));
        let deep = fields(&deep);
        assert_eq!(
            (deep.len(), deep[0].path.len(), &deep[0].kind),
            (1, MAX_DEPTH, &FieldKind::Json)
        );
    }

    #[test]
    fn a_value_without_choices_or_with_too_many_is_entered() {
        for count in [0, MAX_CHOICES + 1] {
            let schema = json!({ "type": "string", "enum": (0..count).collect::<Vec<_>>() });
            assert_eq!(fields(&schema)[0].kind, FieldKind::Text, "{count}");
        }
    }

    #[test]
    fn names_of_a_schema_cannot_move_the_cursor() {
        let schema = json!({ "properties": { "\u{1b}[2J": { "enum": ["\u{1b}[1A"], "description": "\u{9b}2J" } } });
        let field = &fields(&schema)[0];
        for shown in [&[field.prompt()], &field.explanation()[..]].concat() {
            assert!(!shown.chars().any(char::is_control), "{shown:?}");
        }
    }
}
