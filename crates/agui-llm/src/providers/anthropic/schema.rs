//! JSON schemas in the subset that the API compiles to a grammar, for strict tools and for the format of an answer.
//!
//! The API refuses other schemas, and too many of them in one request
//! (<https://platform.claude.com/docs/en/build-with-claude/structured-outputs>, "JSON Schema limitations" and "Schema
//! complexity limits"). Constraints that a grammar lacks become a part of the description; the agent checks them.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

const MAX_STRICT_TOOLS: usize = 20;
const MAX_OPTIONAL_PROPERTIES: usize = 24;
const MAX_UNIONS: usize = 16;
const MAX_DEPTH: usize = 64;
const FORMATS: &[&str] =
    &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// The schemas of a request that become grammars, within the limits of the API.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct GrammarLimits {
    strict_tools: usize,
    optional_properties: usize,
    unions: usize,
}

impl GrammarLimits {
    /// Returns the schema of a tool, or `None` if the tool cannot be strict.
    pub(super) fn strict_tool(&mut self, schema: &Value) -> Option<Value> {
        if self.strict_tools == MAX_STRICT_TOOLS {
            return None;
        }
        let schema = self.grammar(schema)?;
        self.strict_tools += 1;
        Some(schema)
    }

    /// Returns the schema as a grammar, or `None` if it has no grammar.
    pub(super) fn grammar(&mut self, schema: &Value) -> Option<Value> {
        let mut conversion =
            Conversion { root: schema, open: Vec::new(), checked: HashSet::new(), counts: *self };
        let converted = conversion.schema(schema, 0)?;
        let counts = conversion.counts;
        if counts.optional_properties > MAX_OPTIONAL_PROPERTIES || counts.unions > MAX_UNIONS {
            return None;
        }
        *self = counts;
        Some(converted)
    }
}

/// Keywords that do not restrict a value, and `additionalProperties`, which is set again for each
/// object.
const DROPPED: &[&str] = &[
    "additionalProperties",
    "$schema",
    "$id",
    "$comment",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// The place of a keyword in a grammar.
enum Keyword<'n> {
    Kept(&'n str, Value),
    /// The keyword becomes a part of the description.
    Constraint,
    Dropped,
}

struct Conversion<'s> {
    root: &'s Value,
    /// The references that lead to the current schema. A repeated one makes it recursive.
    open: Vec<String>,
    checked: HashSet<String>,
    counts: GrammarLimits,
}

impl Conversion<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        let members = schema.as_object().filter(|members| !members.is_empty())?;
        if depth > MAX_DEPTH {
            return None;
        }
        let mut converted = Map::new();
        let mut constraints = Vec::new();
        for (name, value) in members {
            match self.keyword(name, value, depth)? {
                Keyword::Kept(name, value) => drop(converted.insert(name.to_owned(), value)),
                Keyword::Constraint => constraints.push(format!("{name}: {value}")),
                Keyword::Dropped => {}
            }
        }
        self.close_object(&mut converted)?;
        if !constraints.is_empty() {
            let description =
                converted.get("description").and_then(Value::as_str).unwrap_or_default();
            let description = format!("{description} ({})", constraints.join(", "));
            converted.insert("description".to_owned(), description.trim_start().into());
        }
        let says_something = ["type", "enum", "const", "anyOf", "allOf", "$ref"];
        says_something.iter().any(|name| converted.contains_key(*name)).then(|| converted.into())
    }

    /// Returns `None` if a grammar cannot have the keyword.
    fn keyword<'n>(&mut self, name: &'n str, value: &Value, depth: usize) -> Option<Keyword<'n>> {
        let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
        let kept = match name {
            "properties" | "$defs" | "definitions" => {
                let schemas = value.as_object()?.iter();
                let schemas: Option<Map<_, _>> = schemas
                    .map(|(key, schema)| Some((key.clone(), self.schema(schema, depth + 1)?)))
                    .collect();
                schemas?.into()
            }
            "items" => self.schema(value, depth + 1)?,
            "anyOf" | "oneOf" | "allOf" => return self.combination(name, value.as_array()?, depth),
            "$ref" => {
                self.reference(value.as_str()?, depth)?;
                value.clone()
            }
            "enum" if value.as_array()?.iter().all(is_scalar) => value.clone(),
            "type" => {
                self.counts.unions += usize::from(value.is_array());
                value.clone()
            }
            "const" | "default" | "description" | "title" | "required" => value.clone(),
            "format" if value.as_str().is_some_and(|format| FORMATS.contains(&format)) => {
                value.clone()
            }
            "minItems" if matches!(value.as_u64(), Some(0 | 1)) => value.clone(),
            // A grammar cannot have members of any name.
            "additionalProperties" if *value != Value::Bool(false) => return None,
            "enum" | "patternProperties" | "prefixItems" | "if" | "not" | "dependentSchemas" => {
                return None;
            }
            name if DROPPED.contains(&name) => return Some(Keyword::Dropped),
            _ => return Some(Keyword::Constraint),
        };
        Some(Keyword::Kept(name, kept))
    }

    fn combination<'n>(
        &mut self,
        name: &'n str,
        list: &[Value],
        depth: usize,
    ) -> Option<Keyword<'n>> {
        if name == "allOf" && list.iter().any(|schema| schema.get("$ref").is_some()) {
            return None;
        }
        let list: Option<Vec<_>> =
            list.iter().map(|schema| self.schema(schema, depth + 1)).collect();
        self.counts.unions += usize::from(name != "allOf");
        Some(Keyword::Kept(if name == "oneOf" { "anyOf" } else { name }, list?.into()))
    }

    /// Closes an object: the API requires that it excludes other members than its properties.
    fn close_object(&mut self, schema: &mut Map<String, Value>) -> Option<()> {
        let is_object = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
            None => schema.contains_key("properties"),
        };
        if !is_object {
            return Some(());
        }
        let properties = schema.get("properties")?.as_object()?.len();
        let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        self.counts.optional_properties += properties.saturating_sub(required);
        schema.insert("additionalProperties".to_owned(), json!(false));
        Some(())
    }

    /// Follows a reference. Returns `None` if it leads out of the schema or to itself.
    fn reference(&mut self, reference: &str, depth: usize) -> Option<()> {
        if self.open.iter().any(|open| open == reference) {
            return None;
        }
        if !self.checked.insert(reference.to_owned()) {
            return Some(());
        }
        let root = self.root;
        let target = root.pointer(reference.strip_prefix('#').filter(|path| !path.is_empty())?)?;
        let counts = self.counts;
        self.open.push(reference.to_owned());
        let converted = self.schema(target, depth + 1);
        self.open.pop();
        // A definition is counted once, in its own place.
        self.counts = counts;
        converted.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grammar(schema: Value) -> Option<Value> {
        GrammarLimits::default().grammar(&schema)
    }

    #[test]
    fn a_schema_keeps_what_a_grammar_takes() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "How many", "minimum": 1, "maximum": 9},
                "when": {"type": "string", "format": "date"},
                "code": {"type": "string", "pattern": "^a", "format": "secret"},
                "one": {"oneOf": [{"type": "string"}, {"type": "null"}]},
                "list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1, "maxItems": 3},
            },
            "required": ["count"],
            "$defs": {"item": {"type": "object", "properties": {}}},
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "How many (minimum: 1, maximum: 9)"},
                "when": {"type": "string", "format": "date"},
                "code": {"type": "string", "description": "(pattern: \"^a\", format: \"secret\")"},
                "one": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1, "description": "(maxItems: 3)"},
            },
            "required": ["count"],
            "$defs": {"item": {"type": "object", "properties": {}, "additionalProperties": false}},
            "additionalProperties": false,
        });
        assert_eq!(grammar(schema), Some(expected));
    }

    #[test]
    fn a_schema_that_is_no_grammar_is_refused() {
        let deep = (0..100)
            .fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
        for schema in [
            json!({}),
            json!(true),
            json!({"description": "anything"}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {}, "additionalProperties": true}),
            json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}),
            json!({"type": "array", "items": true}),
            json!({"enum": [{}]}),
            json!({"$ref": "https://a/b"}),
            json!({"$ref": "#/$defs/gone"}),
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}}),
            json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "string"}}}),
            deep,
        ] {
            assert_eq!(grammar(schema.clone()), None, "{schema}");
        }
    }

    #[test]
    fn the_limits_of_a_request_are_kept() {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let mut limits = GrammarLimits::default();
        assert!((0..20).all(|_| limits.strict_tool(&schema).is_some()));
        assert!(limits.strict_tool(&schema).is_none());
        let optional = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        let mut limits = GrammarLimits::default();
        assert!((0..12).all(|_| limits.grammar(&optional).is_some()));
        assert!(limits.grammar(&optional).is_none() && limits.grammar(&schema).is_some());
        let union = json!({"type": ["string", "null"]});
        let mut limits = GrammarLimits::default();
        assert!((0..16).all(|_| limits.grammar(&union).is_some()));
        assert!(limits.grammar(&union).is_none());
    }

    #[test]
    fn references_of_a_client_do_not_multiply_the_work() {
        let mut definitions = Map::new();
        for n in 0..50 {
            let next = format!("#/$defs/d{}", n + 1);
            definitions.insert(
                format!("d{n}"),
                json!({"type": "array", "items": {"anyOf": [{"$ref": next}, {"$ref": next}]}}),
            );
        }
        definitions.insert("d50".to_owned(), json!({"type": "string"}));
        // It has too many unions, which is found out at once.
        assert_eq!(grammar(json!({"$ref": "#/$defs/d0", "$defs": definitions})), None);
    }
}
