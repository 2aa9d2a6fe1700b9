//! The schema of a tool in the form that a provider takes. The agent checks calls against the original.
//!
//! Schemas come from pages, MCP servers and web services. A provider that refuses one of them
//! refuses the whole request, so keywords that it cannot read are replaced by others, or described
//! in words.

use serde_json::{Value, json};

use crate::known_models::ToolLimits;
use agui_protocol::JsonObject;

const TYPES: &[&str] = &["string", "number", "integer", "boolean", "object", "array", "null"];
const COMBINATIONS: &[&str] = &["anyOf", "oneOf", "allOf"];
/// Keywords whose value is a text.
const TEXTS: &[&str] = &["description", "title", "format", "pattern", "$schema", "$id", "$comment"];
const MAX_DEPTH: usize = 64;
/// Combinations within combinations at the top.
const MAX_COMBINATIONS: usize = 8;
const MAX_TOLD_CHARS: usize = 300;

/// A schema, and the words about its removed keywords for the tool's description.
#[derive(Debug, PartialEq)]
pub(super) struct PortableSchema {
    pub(super) schema: Value,
    pub(super) notes: Vec<String>,
}

/// The reason why a schema has no form that the provider takes.
pub(super) type Unportable = &'static str;

/// Returns true if the provider surely takes a schema unchanged. The check costs a fraction of
/// writing the schema into a request.
pub(super) fn is_plain(schema: &Value, limits: &ToolLimits) -> bool {
    let is_plain_at_top =
        |members: &JsonObject| !members.keys().any(|name| limits.refuses_at_top(name));
    schema.get("type").is_some_and(|kind| kind == "object")
        && schema.as_object().is_some_and(is_plain_at_top)
        && has_plain_members(schema, limits)
}

fn has_plain_members(value: &Value, limits: &ToolLimits) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(|item| has_plain_members(item, limits)),
        Value::Object(members) => {
            let is_plain = |(name, value): (&String, &Value)| {
                let is_plain = match name.as_str() {
                    "type" => value.as_str().is_some_and(|kind| TYPES.contains(&kind)),
                    "enum" => value.as_array().is_some_and(|list| !list.is_empty()),
                    "required" => value.as_array().is_some_and(|names| {
                        !names.is_empty() && names.iter().all(Value::is_string)
                    }),
                    "properties" => {
                        value.as_object().is_some_and(|all| all.values().all(Value::is_object))
                    }
                    "items" => value.is_object(),
                    "$ref" | "prefixItems" | "exclusiveMinimum" | "exclusiveMaximum" => false,
                    name => {
                        !COMBINATIONS.contains(&name)
                            && limits.takes_property(name)
                            && !limits.refuses(name)
                    }
                };
                is_plain && has_plain_members(value, limits)
            };
            let is_list_of_any = members.get("type").is_some_and(|kind| kind == "array")
                && !members.contains_key("items");
            !is_list_of_any && members.iter().all(is_plain)
        }
        _ => true,
    }
}

/// Returns the schema in the provider's form.
///
/// # Errors
/// If the schema has no such form.
pub(super) fn portable(schema: &Value, limits: &ToolLimits) -> Result<PortableSchema, Unportable> {
    let mut folding = Folding { root: schema, limits, notes: Vec::new() };
    if !folding.takes_object(schema) {
        return Err("its arguments are no object");
    }
    let Flat { properties, mut required, mut other } = folding.flatten(schema, MAX_COMBINATIONS)?;
    required.sort_unstable();
    required.dedup();
    other.insert("type".to_owned(), "object".into());
    other.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        other.insert("required".to_owned(), required.into());
    }
    let schema = folding.cleaned(&other.into(), MAX_DEPTH)?;
    Ok(PortableSchema { schema, notes: folding.notes })
}

struct Folding<'s> {
    root: &'s Value,
    limits: &'s ToolLimits,
    notes: Vec<String>,
}

/// The schema of an object without combinations.
#[derive(Default)]
struct Flat {
    properties: JsonObject,
    required: Vec<String>,
    other: JsonObject,
}

impl Flat {
    /// Adds a property. If it exists, its schema allows both alternatives.
    fn add_property(&mut self, name: String, schema: Value) {
        let Some(known) = self.properties.get_mut(&name) else {
            self.properties.insert(name, schema);
            return;
        };
        let joined = known
            .as_object()
            .is_some_and(|members| members.len() == 1 && members.contains_key("anyOf"));
        if !joined {
            if *known != schema {
                *known = json!({"anyOf": [known.take(), schema]});
            }
        } else if let Some(list) = known.get_mut("anyOf").and_then(Value::as_array_mut)
            && !list.contains(&schema)
        {
            list.push(schema);
        }
    }

    fn add_missing(&mut self, members: impl IntoIterator<Item = (String, Value)>) {
        for (name, value) in members {
            self.other.entry(name).or_insert(value);
        }
    }
}

impl<'s> Folding<'s> {
    fn resolved(&self, schema: &'s Value) -> &'s Value {
        let reference = schema.get("$ref").and_then(Value::as_str);
        reference.and_then(|path| self.root.pointer(path.strip_prefix('#')?)).unwrap_or(schema)
    }

    fn takes_object(&self, schema: &'s Value) -> bool {
        match self.resolved(schema).get("type") {
            Some(Value::String(kind)) => kind == "object",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            _ => true,
        }
    }

    fn flatten(&mut self, schema: &'s Value, combinations: usize) -> Result<Flat, Unportable> {
        let Some(combinations) = combinations.checked_sub(1) else {
            return Err("its combinations are too deep");
        };
        let mut flat = match self.resolved(schema) {
            target if !std::ptr::eq(target, schema) => self.flatten(target, combinations)?,
            _ => Flat::default(),
        };
        for (name, value) in schema.as_object().into_iter().flatten() {
            match (name.as_str(), value) {
                ("$ref" | "type", _) => {}
                ("properties", Value::Object(properties)) => {
                    properties
                        .iter()
                        .for_each(|(name, schema)| flat.add_property(name.clone(), schema.clone()));
                }
                ("required", Value::Array(names)) => {
                    flat.required.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                ("allOf", Value::Array(parts)) if self.limits.refuses_at_top("allOf") => {
                    for part in parts {
                        let Flat { properties, required, other } =
                            self.flatten(part, combinations)?;
                        properties
                            .into_iter()
                            .for_each(|(name, schema)| flat.add_property(name, schema));
                        flat.required.extend(required);
                        flat.add_missing(other);
                    }
                }
                ("anyOf" | "oneOf", Value::Array(list)) if self.limits.refuses_at_top(name) => {
                    self.add_alternatives(&mut flat, list, combinations)?;
                }
                // A constant may become a list of one value.
                (name, _)
                    if self.limits.refuses_at_top(if name == "const" { "enum" } else { name }) =>
                {
                    self.notes.extend(told(name, value));
                }
                _ => drop(flat.other.insert(name.clone(), value.clone())),
            }
        }
        Ok(flat)
    }

    /// Joins the members of alternatives. A member is required if all alternatives require it.
    fn add_alternatives(
        &mut self,
        flat: &mut Flat,
        list: &'s [Value],
        combinations: usize,
    ) -> Result<(), Unportable> {
        let objects: Vec<_> =
            list.iter().filter(|alternative: &&'s Value| self.takes_object(alternative)).collect();
        let objects: Vec<_> = objects
            .into_iter()
            .map(|alternative| self.flatten(alternative, combinations))
            .collect::<Result<_, _>>()?;
        let Some((first, rest)) = objects.split_first() else {
            return Err("none of its alternatives is an object");
        };
        let is_common = |name: &&String| rest.iter().all(|other| other.required.contains(name));
        let common: Vec<_> = first.required.iter().filter(is_common).cloned().collect();
        if objects.iter().any(|object| object.required.len() > common.len()) {
            let names = objects.iter().map(|object| match object.required.len() {
                0 => "none of them".to_owned(),
                _ => object.required.join(" and "),
            });
            self.notes.push(format!(
                "Required arguments, by alternatives: {}.",
                names.collect::<Vec<_>>().join("; or ")
            ));
        }
        flat.required.extend(common);
        for Flat { properties, other, .. } in objects {
            properties.into_iter().for_each(|(name, schema)| flat.add_property(name, schema));
            // Definitions stay; a title or an exclusion of other members belongs to the
            // alternative.
            let definitions =
                other.into_iter().filter(|(name, _)| name == "$defs" || name == "definitions");
            flat.add_missing(definitions);
        }
        Ok(())
    }

    fn cleaned(&self, schema: &Value, depth: usize) -> Result<Value, Unportable> {
        let Some(depth) = depth.checked_sub(1) else { return Err("its schema is too deep") };
        // Few providers know the schemas `true` and `false`.
        let Value::Object(members) = schema else { return Ok(json!({})) };
        if let Some(Value::String(reference)) = members.get("$ref") {
            let is_known =
                reference.strip_prefix('#').is_some_and(|path| self.root.pointer(path).is_some());
            if is_known && !self.limits.ref_siblings {
                return Ok(json!({"$ref": reference}));
            }
        }
        let mut cleaned = JsonObject::new();
        let mut words = Vec::new();
        for (name, value) in members {
            if self.limits.refuses(name) && !value.is_null() {
                match name.as_str() {
                    "const" => drop(cleaned.insert("enum".to_owned(), json!([value]))),
                    name => words.extend(told(name, value)),
                }
            } else if let Some(value) = self.member(name, value, depth)? {
                cleaned.insert(name.clone(), value);
            }
        }
        self.complete(&mut cleaned, members);
        if !words.is_empty() {
            let description =
                cleaned.get("description").and_then(Value::as_str).unwrap_or_default();
            let description = format!("{description} ({})", words.join(", "));
            cleaned.insert("description".to_owned(), description.trim_start().into());
        }
        Ok(cleaned.into())
    }

    /// Returns the value of a keyword; `None` if no provider can read it.
    fn member(&self, name: &str, value: &Value, depth: usize) -> Result<Option<Value>, Unportable> {
        let all = |schemas: &[Value]| {
            schemas
                .iter()
                .map(|schema| self.cleaned(schema, depth))
                .collect::<Result<Value, Unportable>>()
        };
        Ok(match (name, value) {
            ("const" | "default" | "examples", _) => Some(value.clone()),
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                if name == "properties"
                    && !schemas.keys().all(|name| self.limits.takes_property(name))
                {
                    return Err("the provider refuses the name of an argument");
                }
                let schemas = schemas
                    .iter()
                    .map(|(name, schema)| Ok((name.clone(), self.cleaned(schema, depth)?)));
                Some(Value::Object(schemas.collect::<Result<_, Unportable>>()?))
            }
            ("items", Value::Array(schemas)) if !schemas.is_empty() => {
                Some(json!({"anyOf": all(schemas)?}))
            }
            ("items" | "not" | "if" | "then" | "else", Value::Object(_)) => {
                Some(self.cleaned(value, depth)?)
            }
            ("additionalProperties", Value::Object(_)) => Some(self.cleaned(value, depth)?),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas))
                if !schemas.is_empty() =>
            {
                Some(all(schemas)?)
            }
            ("required", Value::Array(names)) => {
                Some(names.iter().filter(|name| name.is_string()).cloned().collect())
            }
            ("enum", Value::Array(list)) if !list.is_empty() => Some(value.clone()),
            ("type", Value::String(kind)) if TYPES.contains(&kind.as_str()) => Some(value.clone()),
            ("type", Value::Array(kinds)) if !kinds.is_empty() => Some(value.clone()),
            ("$ref", Value::String(path)) => path
                .strip_prefix('#')
                .and_then(|path| self.root.pointer(path))
                .map(|_| value.clone()),
            // The value is `true` in draft 4.
            ("exclusiveMinimum" | "exclusiveMaximum", value) => {
                value.is_number().then(|| value.clone())
            }
            (
                "properties" | "$defs" | "definitions" | "items" | "anyOf" | "oneOf" | "allOf"
                | "prefixItems" | "required" | "enum" | "type" | "$ref",
                _,
            )
            | (_, Value::Null) => None,
            (name, value) if TEXTS.contains(&name) => value.is_string().then(|| value.clone()),
            _ => Some(value.clone()),
        })
    }

    fn complete(&self, cleaned: &mut JsonObject, members: &JsonObject) {
        for (limit, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")]
        {
            if members.get(exclusive) == Some(&Value::Bool(true))
                && !self.limits.refuses(exclusive)
                && let Some(number) = cleaned.shift_remove(limit)
            {
                cleaned.insert(exclusive.to_owned(), number);
            }
        }
        let is_list = match cleaned.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            kind => kind.is_some_and(|kind| kind == "array"),
        };
        if is_list && !cleaned.contains_key("items") && !cleaned.contains_key("prefixItems") {
            cleaned.insert("items".to_owned(), json!({}));
        }
        let known = cleaned.get("properties").and_then(Value::as_object).cloned();
        if let (Some(known), Some(Value::Array(required))) = (known, cleaned.get_mut("required")) {
            required.retain(|name| name.as_str().is_some_and(|name| known.contains_key(name)));
        }
        if cleaned.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            cleaned.shift_remove("required");
        }
    }
}

/// Returns the words about a keyword, unless its value is long.
fn told(name: &str, value: &Value) -> Option<String> {
    let told = format!("{name}: {value}");
    (told.len() <= MAX_TOLD_CHARS).then_some(told)
}

#[cfg(test)]
mod tests;
