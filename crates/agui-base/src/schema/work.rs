//! Counts how often the validator will apply parts of a schema to parts of a value, before it
//! begins.
//!
//! The count follows all branches, even branches that the validator skips because an earlier branch
//! has decided. Counts of the same schema on the same value are computed once, so counting 2^36
//! takes 36 steps.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::references::{self, REFERENCES};

/// The deepest recursion of the validator, in schemas that apply others. Its stack has 2 MiB.
const MAX_LEVELS: usize = 400;
/// A pattern takes a step for each byte and state.
const STEPS_PER_PATTERN_BYTE: u64 = 16;
/// The keywords that read a whole text, with the bytes that they read in a step. Characters are counted in blocks.
const TEXT_KEYWORDS: [(&str, u64); 5] = [
    ("minLength", 64),
    ("maxLength", 64),
    ("format", 1),
    ("contentEncoding", 1),
    ("contentMediaType", 1),
];
/// `uniqueItems` compares the items of short lists in pairs, and puts the items of longer lists
/// into a set.
const STEPS_PER_UNIQUE_VALUE: u64 = 8;
const BYTES_PER_UNIQUE_STEP: u64 = 8;
/// Finding the evaluated members or items applies the schemas beside the keyword once more.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];

/// Returns the number of steps to check a value.
///
/// # Errors
/// If there are more than `limit`, or the recursion would be too deep or endless.
pub(super) fn count_steps(schema: &Value, value: &Value, limit: u64) -> Result<u64, String> {
    let mut counter = Counter { root: schema, known: HashMap::new(), steps: 0, limit };
    counter.count(schema, Instance::Value(value), 0).map(|count| count.steps)
}

/// The target of a schema: a value, or a member's name with `propertyNames`.
#[derive(Clone, Copy)]
enum Instance<'v> {
    Value(&'v Value),
    Name(&'v str),
}

#[derive(Clone, Copy)]
struct Count {
    steps: u64,
    /// The levels of the recursion below.
    height: usize,
}

struct Counter<'v> {
    root: &'v Value,
    /// Keyed by the addresses of a schema and an instance; `None` while the count is being
    /// computed.
    known: HashMap<(*const Value, *const u8), Option<Count>>,
    /// The steps of counting, which `limit` bounds as well.
    steps: u64,
    limit: u64,
}

impl<'v> Counter<'v> {
    fn count(
        &mut self,
        schema: &'v Value,
        instance: Instance<'v>,
        level: usize,
    ) -> Result<Count, String> {
        let Value::Object(keywords) = schema else { return Ok(Count { steps: 1, height: 0 }) };
        let own = own_steps(keywords, instance);
        self.steps = self.steps.saturating_add(own);
        if self.steps > self.limit {
            return Err(self.too_much());
        }
        if !keywords.iter().any(|(name, value)| may_apply(name, value)) {
            return Ok(Count { steps: own, height: 0 });
        }
        let pair = (std::ptr::from_ref(schema), instance.address());
        match self.known.get(&pair) {
            Some(None) => return Err("the schema refers to itself without end".to_owned()),
            Some(Some(known)) if level + known.height <= MAX_LEVELS => return Ok(*known),
            None if level < MAX_LEVELS => {}
            _ => return Err("the value and the schema nest too deeply".to_owned()),
        }
        self.known.insert(pair, None);
        let targets = references::targets(self.root, keywords)?;
        let mut total = Count { steps: own, height: 0 };
        let mut add = |schema: &'v Value, instance: Instance<'v>| {
            let part = self.count(schema, instance, level + 1)?;
            total.steps = total.steps.saturating_add(part.steps);
            total.height = total.height.max(part.height + 1);
            if total.steps > self.limit { Err(self.too_much()) } else { Ok(()) }
        };
        for target in targets {
            add(target, instance)?;
        }
        for_each_part(keywords, instance, &mut add)?;
        if UNEVALUATED.iter().any(|name| keywords.contains_key(*name)) {
            total.steps = total.steps.saturating_mul(2);
        }
        if total.steps > self.limit {
            return Err(self.too_much());
        }
        self.known.insert(pair, Some(total));
        Ok(total)
    }

    fn too_much(&self) -> String {
        format!("checking the value would take more than {} steps", self.limit)
    }
}

/// Calls a function with each schema that the keywords apply, except references, and its target.
fn for_each_part<'v>(
    keywords: &'v Map<String, Value>,
    instance: Instance<'v>,
    apply: &mut impl FnMut(&'v Value, Instance<'v>) -> Result<(), String>,
) -> Result<(), String> {
    for (name, parts) in keywords {
        match (name.as_str(), parts) {
            ("properties", Value::Object(parts)) => {
                for (name, part) in parts {
                    if let Some(member) = instance.value().and_then(|value| value.get(name)) {
                        apply(part, Instance::Value(member))?;
                    }
                }
            }
            ("patternProperties", Value::Object(parts)) => {
                for part in parts.values() {
                    members(instance).try_for_each(|member| apply(part, member))?;
                }
            }
            ("additionalProperties" | "unevaluatedProperties", part) => {
                members(instance).try_for_each(|member| apply(part, member))?;
            }
            ("propertyNames", part) => {
                names(instance).try_for_each(|name| apply(part, Instance::Name(name)))?;
            }
            ("items" | "prefixItems", Value::Array(parts)) => {
                parts.iter().zip(items(instance)).try_for_each(|(part, item)| apply(part, item))?;
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", part) => {
                items(instance).try_for_each(|item| apply(part, item))?;
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                parts.iter().try_for_each(|part| apply(part, instance))?;
            }
            ("not" | "if" | "then" | "else", part) => apply(part, instance)?,
            ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                parts.values().try_for_each(|part| apply(part, instance))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a keyword may apply other schemas.
fn may_apply(keyword: &str, value: &Value) -> bool {
    REFERENCES.contains(&keyword) || !(value.is_string() || value.is_number())
}

/// Returns the steps of the keywords that apply no other schema.
fn own_steps(keywords: &Map<String, Value>, instance: Instance<'_>) -> u64 {
    let mut steps = 1 + keywords.len() as u64;
    if let Some(Value::Array(values)) = keywords.get("enum") {
        steps += values.len() as u64;
    }
    if let Some(text) = instance.text() {
        let len = text.len() as u64;
        if keywords.contains_key("pattern") {
            steps += len * STEPS_PER_PATTERN_BYTE;
        }
        let read = TEXT_KEYWORDS.iter().filter(|(name, _)| keywords.contains_key(*name));
        steps += read.map(|(_, bytes_per_step)| len / bytes_per_step).sum::<u64>();
    }
    if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
        let names: u64 = names(instance).map(|name| name.len() as u64 + 1).sum();
        steps = steps.saturating_add(names * STEPS_PER_PATTERN_BYTE * patterns.len() as u64);
    }
    if keywords.get("uniqueItems") == Some(&Value::Bool(true)) {
        steps = steps.saturating_add(unique_steps(items(instance)));
    }
    steps
}

/// Returns the steps to compare items with each other, without recursion.
fn unique_steps<'v>(items: impl Iterator<Item = Instance<'v>>) -> u64 {
    let (mut steps, mut open) = (0, items.collect::<Vec<_>>());
    while let Some(instance) = open.pop() {
        let bytes =
            instance.text().map_or(0, str::len) + names(instance).map(str::len).sum::<usize>();
        steps += STEPS_PER_UNIQUE_VALUE + bytes as u64 / BYTES_PER_UNIQUE_STEP;
        open.extend(members(instance).chain(self::items(instance)));
    }
    steps
}

impl<'v> Instance<'v> {
    fn value(self) -> Option<&'v Value> {
        match self {
            Self::Value(value) => Some(value),
            Self::Name(_) => None,
        }
    }

    fn text(self) -> Option<&'v str> {
        match self {
            Self::Value(value) => value.as_str(),
            Self::Name(name) => Some(name),
        }
    }

    fn address(self) -> *const u8 {
        match self {
            Self::Value(value) => std::ptr::from_ref(value).cast(),
            Self::Name(name) => name.as_ptr(),
        }
    }
}

fn names(instance: Instance<'_>) -> impl Iterator<Item = &str> {
    instance
        .value()
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|members| members.keys().map(String::as_str))
}

fn members(instance: Instance<'_>) -> impl Iterator<Item = Instance<'_>> {
    let members = instance.value().and_then(Value::as_object).into_iter();
    members.flat_map(|members| members.values().map(Instance::Value))
}

fn items(instance: Instance<'_>) -> impl Iterator<Item = Instance<'_>> {
    instance.value().and_then(Value::as_array).into_iter().flatten().map(Instance::Value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMIT: u64 = 1_000_000;

    #[test]
    fn equal_parts_are_counted_each_time_that_they_are_applied() {
        let schema = json!({ "items": { "type": "integer" } });
        let of_len = |len: usize| count_steps(&schema, &json!(vec![1; len]), LIMIT).unwrap();
        assert_eq!(of_len(100) - of_len(0), 10 * (of_len(10) - of_len(0)));
        let mut doubling = json!({ "type": "integer" });
        for _ in 0..10 {
            doubling = json!({ "allOf": [doubling, doubling] });
        }
        assert!(count_steps(&doubling, &json!(1), LIMIT).unwrap() > 2 << 10);
    }

    #[test]
    fn a_recursive_schema_is_counted_along_the_value() {
        let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } });
        let value = (0..30).fold(json!({}), |below, _| json!({ "left": below }));
        assert!(count_steps(&tree, &value, LIMIT).unwrap() < 1000);
        // Each level applies the schema twice to the same member.
        let twice = json!({ "allOf": [{ "properties": { "a": { "$ref": "#" } } }, { "properties": { "a": { "$ref": "#" } } }] });
        let value = (0..60).fold(json!({}), |below, _| json!({ "a": below }));
        assert!(
            count_steps(&twice, &value, LIMIT).unwrap_err().contains("more than 1000000 steps")
        );
    }

    #[test]
    fn endless_and_deep_recursion_is_refused() {
        for endless in
            [json!({ "$ref": "#" }), json!({ "allOf": [{ "anyOf": [{ "$ref": "#" }] }] })]
        {
            assert!(count_steps(&endless, &json!({}), LIMIT).unwrap_err().contains("without end"));
        }
        let list = json!({ "properties": { "a": { "allOf": [{ "allOf": [{ "allOf": [{ "$ref": "#" }] }] }] } } });
        let value = (0..120).fold(json!({}), |below, _| json!({ "a": below }));
        assert!(count_steps(&list, &value, LIMIT).unwrap_err().contains("too deeply"));
    }

    #[test]
    fn long_texts_with_patterns_and_nested_unevaluated_members_count() {
        let text = json!("x".repeat(100_000));
        assert!(count_steps(&json!({ "pattern": "a" }), &text, LIMIT).is_err());
        assert!(count_steps(&json!({ "minLength": 1 }), &text, LIMIT).is_ok());
        let nested = (0..40).fold(
            json!({}),
            |inner, _| json!({ "allOf": [inner], "unevaluatedProperties": false }),
        );
        assert!(count_steps(&nested, &json!({}), LIMIT).is_err());
    }

    #[test]
    fn names_of_members_count_as_texts() {
        let many = |part: Value| json!({ "propertyNames": { "allOf": vec![json!({ "$ref": "#/$defs/p" }); 1000] }, "$defs": { "p": part } });
        let value = |len: usize| json!({ "n".repeat(len): 1 });
        for part in
            [json!({ "pattern": "a" }), json!({ "maxLength": 1 }), json!({ "format": "regex" })]
        {
            let schema = many(part);
            assert!(count_steps(&schema, &value(10), LIMIT).is_ok());
            assert!(count_steps(&schema, &value(1 << 20), LIMIT).is_err(), "{schema}");
        }
        let alike = json!({ "propertyNames": { "$ref": "#/$defs/p" }, "$defs": { "p": { "allOf": [{ "minLength": 1 }] } } });
        assert!(count_steps(&alike, &json!({ "": 1, "a": { "": 2 } }), LIMIT).is_ok());
    }

    #[test]
    fn texts_count_each_time_that_they_are_measured() {
        let text = json!("x".repeat(1 << 20));
        for part in
            [json!({ "minLength": 1 }), json!({ "maxLength": 1 }), json!({ "format": "uri" })]
        {
            let schema = json!({ "allOf": vec![json!({ "$ref": "#/$defs/p" }); 1000], "$defs": { "p": part } });
            assert!(count_steps(&schema, &text, LIMIT).is_err(), "{schema}");
        }
    }

    #[test]
    fn unique_items_count_with_all_that_they_contain() {
        let schema = json!({ "allOf": vec![json!({ "$ref": "#/$defs/p" }); 800], "$defs": { "p": { "uniqueItems": true } } });
        let numbers = |len: usize| (0..len).map(Value::from).collect::<Vec<_>>();
        assert!(count_steps(&schema, &json!(numbers(20)), LIMIT).is_ok());
        let texts = vec![json!("a".repeat(100_000)), json!("a".repeat(100_000))];
        for value in [
            json!(numbers(10_000)),
            json!([numbers(10_000), []]),
            json!(texts),
            json!([{ "a".repeat(100_000): 1 }]),
        ] {
            assert!(count_steps(&schema, &value, LIMIT).is_err());
        }
    }
}
