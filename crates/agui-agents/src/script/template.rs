//! Texts and JSON with placeholders such as `{city}`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use agui_protocol::JsonObject;

pub(super) type Values = HashMap<String, String>;

/// Adds the members of an object, each as `{name.member}`.
pub(super) fn add_members(name: &str, members: &JsonObject, values: &mut Values) {
    values.extend(members.iter().map(|(member, value)| (format!("{name}.{member}"), plain(value))));
}

pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Placeholder(String),
}

impl TryFrom<String> for Template {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = &*text;
        while let Some(brace) = rest.find(['{', '}']) {
            literal.push_str(&rest[..brace]);
            let opening = rest[brace..].starts_with('{');
            rest = &rest[brace + 1..];
            if let Some(doubled) = rest.strip_prefix(if opening { '{' } else { '}' }) {
                literal.push(if opening { '{' } else { '}' });
                rest = doubled;
                continue;
            }
            let Some((name, behind)) = rest.split_once('}').filter(|_| opening) else {
                return Err(format!(
                    "{text:?} has a brace that is not part of a placeholder; double it"
                ));
            };
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
            pieces.push(Piece::Placeholder(name.to_owned()));
            rest = behind;
        }
        literal.push_str(rest);
        pieces.push(Piece::Text(literal));
        Ok(Self(pieces))
    }
}

impl Template {
    pub(super) fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Placeholder(name) => Some(&**name),
        })
    }

    pub(super) fn fill(&self, values: &Values) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Placeholder(name) => values.get(name).map_or("", String::as_str),
        });
        pieces.collect()
    }
}

/// JSON whose strings are templates.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct JsonTemplate {
    /// Its strings are empty.
    json: Value,
    /// The templates of the strings, in order.
    pub(super) texts: Vec<Template>,
}

impl TryFrom<Value> for JsonTemplate {
    type Error = String;

    fn try_from(mut json: Value) -> Result<Self, String> {
        let mut texts = Vec::new();
        for_each_text(&mut json, &mut |text| texts.push(Template::try_from(std::mem::take(text))));
        Ok(Self { json, texts: texts.into_iter().collect::<Result<_, _>>()? })
    }
}

impl JsonTemplate {
    pub(super) fn fill(&self, values: &Values) -> Value {
        let (mut json, mut texts) = (self.json.clone(), self.texts.iter());
        for_each_text(&mut json, &mut |text| {
            text.extend(texts.next().map(|template| template.fill(values)))
        });
        json
    }
}

/// Calls `change` with the strings of a value, in order.
fn for_each_text(json: &mut Value, change: &mut impl FnMut(&mut String)) {
    match json {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_text(item, change)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| for_each_text(member, change))
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> Result<String, String> {
        let values = Values::from([("city".to_owned(), "Paris".to_owned())]);
        Template::try_from(text.to_owned()).map(|template| template.fill(&values))
    }

    #[test]
    fn placeholders_are_filled_and_doubled_braces_are_braces() {
        assert_eq!(fill("In {city}{nothing}: {{{city}}}").unwrap(), "In Paris: {Paris}");
        assert_eq!(fill("").unwrap(), "");
    }

    #[test]
    fn single_braces_are_refused() {
        for text in ["{city", "city}", "a } b", "{"] {
            assert!(fill(text).unwrap_err().contains("double it"), "{text}");
        }
    }
}
