//! Regular expressions in schemas. They are matched in linear time, so expressions that need
//! backtracking are not supported.

use jsonschema::PatternOptions;
use serde_json::{Value, json};

/// The memory of a compiled pattern, and of its cache, in bytes.
const MAX_COMPILED_BYTES: usize = 128 * 1024;

pub(super) fn options() -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex().size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES)
}

/// Removes the values of `pattern` that are not supported, such as look-ahead, and returns them. Then the schema accepts
/// more, and its author has to check the values. The nesting of the schema must be limited.
pub fn remove_unsupported_patterns(schema: &mut Value) -> Vec<String> {
    match schema {
        Value::Array(items) => items.iter_mut().flat_map(remove_unsupported_patterns).collect(),
        Value::Object(members) => {
            let pattern = members
                .get("pattern")
                .and_then(Value::as_str)
                .filter(|pattern| !is_supported(pattern));
            let mut removed: Vec<_> = pattern.map(str::to_owned).into_iter().collect();
            if !removed.is_empty() {
                members.shift_remove("pattern");
            }
            let is_data =
                |name: &str, member: &Value| name == "const" || name == "enum" && member.is_array();
            let schemas = members.iter_mut().filter(|(name, member)| !is_data(name, member));
            removed.extend(schemas.flat_map(|(_, member)| remove_unsupported_patterns(member)));
            removed
        }
        _ => Vec::new(),
    }
}

fn is_supported(pattern: &str) -> bool {
    jsonschema::options()
        .offline()
        .with_pattern_options(options())
        .build(&json!({ "pattern": pattern }))
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_patterns_that_need_backtracking_or_much_memory_are_removed() {
        let mut schema = json!({ "properties": {
            "a": { "pattern": "^(?!x)[a-z]+$" }, "b": { "pattern": "^[a-z]{1,64}$" },
            "c": { "items": [{ "pattern": r"(a)\1" }] }, "d": { "const": { "pattern": "(?=a)" } },
            "e": { "pattern": "\\p{L}{1000}{1000}" }, "pattern": { "type": "string" }
        } });
        let mut removed = remove_unsupported_patterns(&mut schema);
        removed.sort();
        assert_eq!(removed, [r"(a)\1", "\\p{L}{1000}{1000}", "^(?!x)[a-z]+$"]);
        assert_eq!(
            schema,
            json!({ "properties": {
            "a": {}, "b": { "pattern": "^[a-z]{1,64}$" }, "c": { "items": [{}] },
            "d": { "const": { "pattern": "(?=a)" } }, "e": {}, "pattern": { "type": "string" }
        } })
        );
    }
}
