//! Checks whether OpenAI takes a JSON schema as strict.

use serde_json::Value;

/// Keywords that the service refuses in a strict schema.
const REFUSED: &[&str] =
    &["allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else"];

/// Returns whether each object of the schema is closed and requires all its members, as
/// <https://developers.openai.com/api/docs/guides/structured-outputs>, "Supported schemas", demands.
pub(crate) fn allows_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let is_closed = match members.get("properties").and_then(Value::as_object) {
                None => members.get("type").is_none_or(|kind| kind != "object"),
                Some(properties) => {
                    let required = members.get("required").and_then(Value::as_array);
                    let is_required = |name: &String| {
                        required.is_some_and(|names| names.iter().any(|required| required == name))
                    };
                    members.get("additionalProperties") == Some(&Value::Bool(false))
                        && properties.keys().all(is_required)
                        && properties.values().all(allows_strict)
                }
            };
            let others = members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "properties" | "enum" | "const"));
            is_closed
                && !REFUSED.iter().any(|name| members.contains_key(*name))
                && others.map(|(_, value)| value).all(allows_strict)
        }
        Value::Array(values) => values.iter().all(allows_strict),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_object_is_closed_and_requires_its_members() {
        let closed = json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"],
            "additionalProperties": false});
        assert!(allows_strict(&closed));
        assert!(allows_strict(
            &json!({"type": "object", "properties": {}, "additionalProperties": false})
        ));
        assert!(allows_strict(&json!({"type": "array", "items": closed})));
        assert!(allows_strict(&json!({"anyOf": [closed, {"type": "null"}]})));
        for open in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {}}, "required": ["a"]}),
            json!({"type": "object", "properties": {"a": {}}, "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"],
                "additionalProperties": false}),
            json!({"type": "array", "items": {"type": "object"}}),
            json!({"$defs": {"x": {"type": "object", "properties": {}}}, "type": "string"}),
            json!({"oneOf": [closed]}),
        ] {
            assert!(!allows_strict(&open), "{open}");
        }
        // A member can have the name of a keyword.
        assert!(allows_strict(
            &json!({"type": "object", "properties": {"not": {"type": "string"}},
            "required": ["not"], "additionalProperties": false})
        ));
    }
}
