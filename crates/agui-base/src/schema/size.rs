//! The size of a schema with its references resolved.

use std::collections::HashMap;

use serde_json::Value;

use super::references;

/// Values of a schema in which each reference is replaced by its target.
const MAX_EXPANDED_VALUES: u64 = 100_000;
/// The deepest nesting of such a schema. It bounds the stack of the validator.
const MAX_EXPANDED_DEPTH: usize = 256;
/// A compiled pattern takes up to 128 KiB.
const MAX_PATTERNS: usize = 100;

/// The limits of a schema as it is written.
#[derive(Debug, Clone, Copy)]
pub struct SchemaLimits {
    pub bytes: usize,
    /// Levels of arrays and objects.
    pub depth: usize,
}

impl SchemaLimits {
    /// The limits of the schemas of tools, and of an interrupt that asks about a call.
    pub const TOOL: Self = Self { bytes: 256 * 1024, depth: 64 };
    /// The schema of an answer contains the arguments' schema, two levels deeper.
    pub const INTERRUPT: Self =
        Self { bytes: Self::TOOL.bytes + 1024, depth: Self::TOOL.depth + 2 };
}

/// Checks the size of a schema. Takes time linear in its length.
///
/// # Errors
/// The limit that it exceeds, or a reference that cannot be resolved.
pub fn check_size(schema: &Value, limits: SchemaLimits) -> Result<(), String> {
    if extent(schema).1 > limits.depth {
        return Err(format!("the schema nests deeper than {} levels", limits.depth));
    }
    if schema.to_string().len() > limits.bytes {
        return Err(format!("the schema is longer than {} bytes", limits.bytes));
    }
    let mut expansion = Expansion { root: schema, known: HashMap::new(), patterns: 0 };
    let size = expansion.size(schema, 0)?;
    if size.values > MAX_EXPANDED_VALUES {
        return Err(format!(
            "with its references resolved the schema has more than {MAX_EXPANDED_VALUES} values"
        ));
    }
    if expansion.patterns > MAX_PATTERNS {
        return Err(format!("the schema has more than {MAX_PATTERNS} patterns"));
    }
    Ok(())
}

/// Returns the number of values in a value and its nesting depth, without recursion, because the depth is not limited yet.
pub(super) fn extent(value: &Value) -> (u64, usize) {
    let mut count = 0;
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        (count, deepest) = (count + 1, deepest.max(level));
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(members) => {
                open.extend(members.values().map(|member| (member, level + 1)))
            }
            _ => {}
        }
    }
    (count, deepest)
}

#[derive(Debug, Clone, Copy)]
struct Size {
    values: u64,
    height: usize,
}

struct Expansion<'s> {
    root: &'s Value,
    /// The sizes of the objects and arrays so far, by address; `None` while the size is being computed.
    known: HashMap<*const Value, Option<Size>>,
    patterns: usize,
}

impl<'s> Expansion<'s> {
    /// A reference to a schema around it counts as one value: such a schema is legal.
    /// [`work::count_steps`](super::work::count_steps) counts how often a value applies it.
    fn size(&mut self, schema: &'s Value, level: usize) -> Result<Size, String> {
        let mut size = Size { values: 1, height: 1 };
        if !schema.is_object() && !schema.is_array() {
            return Ok(size);
        }
        let known = self.known.get(&std::ptr::from_ref(schema)).copied();
        if let Some(known) = known {
            size = known.unwrap_or(size);
        }
        if level + size.height > MAX_EXPANDED_DEPTH {
            return Err(format!(
                "with its references resolved the schema nests deeper than {MAX_EXPANDED_DEPTH} levels"
            ));
        }
        if known.is_some() {
            return Ok(size);
        }
        self.known.insert(schema, None);
        let mut add = |parts: &mut Self, part: &'s Value| {
            let part = parts.size(part, level + 1)?;
            size.values = size.values.saturating_add(part.values);
            size.height = size.height.max(part.height + 1);
            Ok::<_, String>(())
        };
        match schema {
            Value::Array(items) => items.iter().try_for_each(|item| add(self, item))?,
            Value::Object(members) => {
                let has_id = members.get("$id").or(members.get("id")).is_some_and(Value::is_string);
                if has_id && level > 0 && (members.contains_key("$id") || self.is_of_draft_4()) {
                    return Err(
                        "the schema has an `$id` within: only its root may have one".to_owned()
                    );
                }
                self.patterns += usize::from(members.get("pattern").is_some_and(Value::is_string));
                self.patterns += members
                    .get("patternProperties")
                    .and_then(Value::as_object)
                    .map_or(0, |patterns| patterns.len());
                members.values().try_for_each(|member| add(self, member))?;
                references::targets(self.root, members)?
                    .into_iter()
                    .try_for_each(|target| add(self, target))?;
            }
            _ => {}
        }
        self.known.insert(schema, Some(size));
        Ok(size)
    }

    fn is_of_draft_4(&self) -> bool {
        self.root
            .get("$schema")
            .and_then(Value::as_str)
            .is_some_and(|draft| draft.contains("draft-04"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value) -> Result<(), String> {
        check_size(schema, SchemaLimits::TOOL)
    }

    /// `levels` definitions, each of which applies the next one twice.
    fn doubling(levels: usize) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let next = format!("#/$defs/d{}", level + 1);
            definitions.insert(
                format!("d{level}"),
                json!({ "allOf": [{ "$ref": next }, { "$ref": next }] }),
            );
        }
        definitions.insert(format!("d{levels}"), json!({ "minProperties": 0 }));
        json!({ "type": "object", "$defs": definitions, "$ref": "#/$defs/d0" })
    }

    #[test]
    fn references_are_counted_as_what_they_refer_to() {
        check(&doubling(10)).unwrap();
        for levels in [20, 36, 60] {
            assert!(
                check(&doubling(levels)).unwrap_err().contains("more than 100000 values"),
                "{levels}"
            );
        }
        assert!(check(&doubling(500)).unwrap_err().contains("nests deeper than 256 levels"));
        let chain =
            (0..2000).map(|n| (format!("d{n}"), json!({ "$ref": format!("#/$defs/d{}", n + 1) })));
        let mut chain: serde_json::Map<_, _> = chain.collect();
        chain.insert("d2000".to_owned(), json!({}));
        assert!(check(&json!({ "$defs": chain })).unwrap_err().contains("nests deeper"));
    }

    #[test]
    fn recursive_schemas_are_legal() {
        let tree = json!({ "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } });
        check(&tree).unwrap();
        let list = json!({
            "$defs": { "node": { "properties": { "next": { "$ref": "#/$defs/node" } } } },
            "properties": { "first": { "$ref": "#/$defs/node" } }
        });
        check(&list).unwrap();
    }

    #[test]
    fn references_that_could_be_read_in_two_ways_are_refused() {
        for reference in
            ["#name", "other", "#/$defs/a%62", "https://example.com/schema", "#/$defs/gone"]
        {
            let schema = json!({ "$defs": { "ab": {} }, "$ref": reference });
            assert!(check(&schema).unwrap_err().contains(reference), "{reference}");
        }
        let inner = json!({ "$defs": { "a": { "$id": "https://example.com/a", "$ref": "#/$defs/b" }, "b": {} } });
        assert!(check(&inner).unwrap_err().contains("`$id`"));
        check(&json!({ "$id": "https://example.com/root", "properties": { "id": { "type": "string" } } })).unwrap();
    }

    #[test]
    fn patterns_are_limited() {
        let schema = |count: usize| {
            let properties: serde_json::Map<_, _> =
                (0..count).map(|n| (format!("p{n}"), json!({ "pattern": "a" }))).collect();
            json!({ "properties": properties })
        };
        check(&schema(100)).unwrap();
        assert!(check(&schema(101)).unwrap_err().contains("more than 100 patterns"));
    }
}
