//! Reads the arguments of a call as models write them. Stored and streamed texts stay unchanged.
//!
//! A repair changes the form alone: no value is guessed, converted to another type or completed, so
//! a call that was cut off stays invalid. The same text always becomes the same object, so the call
//! that a person approves is the call that runs.

use std::{iter::Peekable, str::Chars};

use serde_json::{Deserializer, Value};

use agui_base::lenient_json;
use agui_protocol::JsonObject;

/// The number of times that an object can be encoded as a text.
const MAX_ENCODINGS: usize = 3;
const FENCE: &str = "```";

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallArguments {
    /// The arguments by name, after the repairs.
    pub object: JsonObject,
    /// The names of the repairs, for logs.
    pub repairs: Vec<&'static str>,
}

impl CallArguments {
    /// Reads the arguments that a model wrote. An empty text means no arguments.
    ///
    /// # Errors
    /// The reason, for the model.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut repairs = Vec::new();
        let object = read(text, MAX_ENCODINGS, &mut repairs)?;
        Ok(Self { object, repairs })
    }

    /// Returns the arguments in the form that a schema asks for; `None` if nothing can be repaired.
    pub(crate) fn fitted(&self, schema: &Value) -> Option<Self> {
        let mut fitted = self.clone();
        let top = Schema { root: schema, here: schema }.at(schema);
        fit_object(&mut fitted.object, top, &mut fitted.repairs);
        (fitted.repairs.len() > self.repairs.len()).then_some(fitted)
    }
}

fn read(
    text: &str,
    encodings: usize,
    repairs: &mut Vec<&'static str>,
) -> Result<JsonObject, String> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.is_empty() {
        return Ok(JsonObject::new());
    }
    // The parser refuses more than 128 levels.
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(Value::Null) => {
            repairs.push("null");
            Ok(JsonObject::new())
        }
        Ok(Value::String(inner)) if encodings > 0 => {
            repairs.push("encoded twice");
            read(&inner, encodings - 1, repairs).map_err(|_| not_an_object(&Value::String(inner)))
        }
        Ok(other) => Err(not_an_object(&other)),
        Err(error) => {
            let problem = || format!("The arguments are not valid JSON: {error}");
            if let Some(inner) = without_fence(text).filter(|_| encodings > 0) {
                repairs.push("code fence");
                return read(inner, encodings - 1, repairs).map_err(|_| problem());
            }
            let (repair, object) = repeated(text)
                .map(|object| ("several objects", object))
                .or_else(|| Some(("not JSON", serde_json::from_str(&as_json(text)?).ok()?)))
                .ok_or_else(problem)?;
            repairs.push(repair);
            Ok(object)
        }
    }
}

fn not_an_object(value: &Value) -> String {
    format!("The arguments have to be a JSON object, not {}.", type_name(value))
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

/// Returns the text within Markdown's marks of code.
fn without_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix(FENCE)?;
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
    Some(inner.trim_end().strip_suffix(FENCE).unwrap_or(inner))
}

/// Returns the object of a text with several: some servers begin with `{}`, others write the whole object again.
fn repeated(text: &str) -> Option<JsonObject> {
    let objects: Vec<JsonObject> =
        Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().ok()?;
    let mut filled = objects.into_iter().filter(|object| !object.is_empty());
    let only = filled.next().unwrap_or_default();
    filled.all(|other| other == only).then_some(only)
}

/// Returns JSON for a text with literals of Python, single quotes, commas at the end of a list, line ends in texts or
/// escapes that JSON lacks. `None` if the text has other words than literals.
fn as_json(text: &str) -> Option<String> {
    let whole = lenient_json::without_lone_halves(text);
    let mut chars = whole.as_deref().unwrap_or(text).chars().peekable();
    let mut json = String::with_capacity(text.len() + 16);
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' => add_string(c, &mut chars, &mut json)?,
            ',' => {
                let next = chars.clone().find(|c| !c.is_whitespace());
                if !matches!(next, Some('}' | ']')) {
                    json.push(',');
                }
            }
            'e' | 'E' if json.ends_with(|c: char| c.is_ascii_digit()) => json.push(c),
            c if c.is_alphabetic() => add_word(c, &mut chars, &mut json)?,
            c => json.push(c),
        }
    }
    Some(json)
}

fn add_string(quote: char, chars: &mut Peekable<Chars<'_>>, json: &mut String) -> Option<()> {
    json.push('"');
    loop {
        match chars.next()? {
            c if c == quote => break,
            '"' => json.push_str("\\\""),
            '\\' => match chars.next()? {
                '\'' => json.push('\''),
                c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => {
                    json.extend(['\\', c])
                }
                // Python keeps such a backslash, and a regular expression needs it.
                c => json.extend(['\\', '\\', c]),
            },
            c if c.is_ascii_control() => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    Some(())
}

fn add_word(first: char, chars: &mut Peekable<Chars<'_>>, json: &mut String) -> Option<()> {
    let mut word = String::from(first);
    while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
        word.push(c);
    }
    json.push_str(match word.as_str() {
        "true" | "True" => "true",
        "false" | "False" => "false",
        "null" | "None" => "null",
        _ => return None,
    });
    Some(())
}

/// A part of a schema. References point from its root.
#[derive(Clone, Copy)]
struct Schema<'s> {
    root: &'s Value,
    here: &'s Value,
}

impl<'s> Schema<'s> {
    /// The part itself, or the one that it refers to.
    fn at(self, here: &'s Value) -> Self {
        let target = here
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|path| self.root.pointer(path.strip_prefix('#')?));
        Self { here: target.unwrap_or(here), ..self }
    }

    fn property(self, name: &str) -> Option<Self> {
        Some(self.at(self.here.get("properties")?.get(name)?))
    }

    fn requires(self, name: &str) -> bool {
        let required = self.here.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    }

    /// Returns the types of the values that fit; `None` if the schema does not say.
    fn types(self) -> Option<Vec<&'s str>> {
        let alternatives =
            ["anyOf", "oneOf"].iter().find_map(|name| self.here.get(name)?.as_array());
        match (self.here.get("type"), alternatives) {
            (Some(Value::String(kind)), _) => Some(vec![kind.as_str()]),
            (Some(Value::Array(kinds)), _) => kinds.iter().map(Value::as_str).collect(),
            (_, Some(list)) => {
                let types: Option<Vec<_>> =
                    list.iter().map(|schema| self.at(schema).own_types()).collect();
                Some(types?.concat())
            }
            _ => None,
        }
    }

    fn own_types(self) -> Option<Vec<&'s str>> {
        self.here.get("type").and_then(|_| self.types())
    }
}

/// Removes optional members that must not be `null` but are, and decodes lists and objects that are
/// encoded as texts.
fn fit_object(object: &mut JsonObject, schema: Schema<'_>, repairs: &mut Vec<&'static str>) {
    object.retain(|name, value| {
        let Some(property) = schema.property(name) else { return true };
        let takes_null = property.types().is_none_or(|types| types.contains(&"null"));
        let is_left_out = value.is_null() && !takes_null && !schema.requires(name);
        if is_left_out {
            repairs.push("null for an optional member");
        } else {
            fit(value, property, repairs);
        }
        !is_left_out
    });
}

fn fit(value: &mut Value, schema: Schema<'_>, repairs: &mut Vec<&'static str>) {
    match value {
        Value::Object(object) => fit_object(object, schema, repairs),
        Value::Array(items) => {
            if let Some(of_items) = schema.here.get("items") {
                items.iter_mut().for_each(|item| fit(item, schema.at(of_items), repairs));
            }
        }
        Value::String(text) => {
            if let Some(inner) = encoded(text, schema) {
                repairs.push("a member encoded as text");
                *value = inner;
                fit(value, schema, repairs);
            }
        }
        _ => {}
    }
}

/// Decodes a list or an object from a text, if the schema allows one and no text.
fn encoded(text: &str, schema: Schema<'_>) -> Option<Value> {
    let types = schema.types()?;
    let value: Value =
        serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&as_json(text)?).ok())?;
    let kind = match value {
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        _ => return None,
    };
    (types.contains(&kind) && !types.contains(&"string")).then_some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(text: &str) -> Value {
        CallArguments::read(text)
            .unwrap_or_else(|problem| panic!("{text}: {problem}"))
            .object
            .into()
    }

    #[test]
    fn arguments_are_read_in_every_form_in_which_models_write_them() {
        for (text, expected) in [
            ("", json!({})),
            ("null", json!({})),
            ("\"\"", json!({})),
            ("{}{\"a\":1}", json!({"a": 1})),
            ("{} {}", json!({})),
            ("{\"a\":1}\n{\"a\":1}", json!({"a": 1})),
            (r#""{\"a\":\"}{\"}""#, json!({"a": "}{"})),
            (r#""\"{\\\"a\\\":1}\"""#, json!({"a": 1})),
            ("```json\n{\"a\":1}\n```", json!({"a": 1})),
            ("```\n{'a': True}\n```", json!({"a": true})),
            (
                "{'a': True, 'b': None, 'c': False, 'd': [1, 2,], }",
                json!({"a": true, "b": null, "c": false, "d": [1, 2]}),
            ),
            (r#"{'a': 'it\'s "so"', "b": "it's"}"#, json!({"a": "it's \"so\"", "b": "it's"})),
            ("{\"a\":\"one\ntwo\\d\", \"n\": 1e3,}", json!({"a": "one\ntwo\\d", "n": 1e3})),
            (r#"{"a":"x \ud83d"}"#, json!({"a": "x \u{fffd}"})),
            (r#"{"a":"\ud83d\ude00",}"#, json!({"a": "😀"})),
            ("\u{feff}{\"a\":1}", json!({"a": 1})),
        ] {
            assert_eq!(object(text), expected, "{text}");
        }
        assert!(CallArguments::read(r#"{"a": "True, None,}"}"#).unwrap().repairs.is_empty());
    }

    #[test]
    fn what_is_cut_off_or_contradicts_itself_stays_invalid() {
        for text in [
            "{\"a\":",
            "{'a': 'b",
            "{}{\"a\":",
            "{\"a\":1}{\"a\":2}",
            "{\"a\":1} x",
            "[1]",
            "7",
            "\"Berlin\"",
            "{a: 1}",
            "{\"a\": NaN}",
            "```json\n{\"a\":\n```",
            "{'a': 1",
        ] {
            assert!(CallArguments::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn members_get_the_form_of_the_schema_and_no_value_is_converted() {
        let schema = json!({
            "type": "object",
            "$defs": {"tags": {"type": "array", "items": {"type": "string"}}},
            "properties": {
                "tags": {"$ref": "#/$defs/tags"},
                "where": {"type": "object", "properties": {"city": {"type": "string"}, "zip": {"type": "string"}}},
                "list": {"anyOf": [{"type": "array"}, {"type": "null"}]},
                "text": {"type": "string"},
                "either": {"type": ["string", "array"]},
                "any": {},
                "amount": {"type": "integer"},
                "must": {"type": "string"},
            },
            "required": ["must"],
        });
        let fitted = |arguments: Value| {
            let read = CallArguments::read(&arguments.to_string()).unwrap();
            read.fitted(&schema).map(|fitted| Value::Object(fitted.object))
        };
        let changed = fitted(json!({
            "tags": "[\"a\",\"b\"]", "where": "{'city': 'x', 'zip': None}", "list": "[1]", "amount": null, "text": null
        }));
        assert_eq!(changed, Some(json!({"tags": ["a", "b"], "where": {"city": "x"}, "list": [1]})));
        assert_eq!(fitted(json!({"where": {"zip": null}})), Some(json!({"where": {}})));
        for unchanged in [
            json!({"amount": "5"}),
            json!({"must": null}),
            json!({"any": null}),
            json!({"either": "[1]"}),
            json!({"list": null}),
            json!({"tags": "[1"}),
            json!({"tags": "7"}),
            json!({"other": null}),
            json!({"text": "{}"}),
        ] {
            assert_eq!(fitted(unchanged.clone()), None, "{unchanged}");
        }
    }
}
