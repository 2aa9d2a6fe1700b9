//! Texts and JSON with placeholders such as `{city}`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use crate::protocol::JsonObject;

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
                return Err(format!("{text:?} has a brace that is not part of a placeholder; double it"));
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

#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(super) enum JsonTemplate {
    Text(Template),
    Array(Vec<Self>),
    Object(Vec<(String, Self)>),
    Fixed(Value),
}

impl TryFrom<Value> for JsonTemplate {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::Text(Template::try_from(text)?),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::try_from).collect::<Result<_, _>>()?),
            Value::Object(object) => {
                let members = object.into_iter().map(|(name, value)| Ok((name, Self::try_from(value)?)));
                Self::Object(members.collect::<Result<_, String>>()?)
            }
            fixed => Self::Fixed(fixed),
        })
    }
}

impl JsonTemplate {
    pub(super) fn add_templates<'a>(&'a self, templates: &mut Vec<&'a Template>) {
        match self {
            Self::Text(template) => templates.push(template),
            Self::Array(items) => items.iter().for_each(|item| item.add_templates(templates)),
            Self::Object(members) => members.iter().for_each(|(_, value)| value.add_templates(templates)),
            Self::Fixed(_) => {}
        }
    }

    pub(super) fn fill(&self, values: &Values) -> Value {
        match self {
            Self::Text(template) => Value::String(template.fill(values)),
            Self::Array(items) => Value::Array(items.iter().map(|item| item.fill(values)).collect()),
            Self::Object(members) => {
                Value::Object(members.iter().map(|(name, value)| (name.clone(), value.fill(values))).collect())
            }
            Self::Fixed(value) => value.clone(),
        }
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
