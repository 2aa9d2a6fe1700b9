use proptest::{prelude::*, sample::select};
use serde_json::json;

use super::*;
use crate::{known_models::KnownModels, providers::Api};

fn openai() -> std::sync::Arc<ToolLimits> {
    KnownModels::default().tool_limits("openai")
}

fn folded(schema: &Value) -> (Value, Vec<String>) {
    let PortableSchema { schema, notes } = portable(schema, &openai()).unwrap();
    (schema, notes)
}

#[test]
fn alternatives_at_the_top_are_joined_and_told() {
    let schema = json!({
        "type": "object",
        "properties": {"project": {"type": "string"}},
        "required": ["project"],
        "anyOf": [
            {"properties": {"paths": {"type": "array", "items": {"type": "string"}}, "kind": {"const": "a"}}, "required": ["paths", "kind"]},
            {"properties": {"scopes": {"type": "string"}, "kind": {"const": "b"}}, "required": ["scopes", "kind"]},
        ],
    });
    let (folded, notes) = folded(&schema);
    let expected = json!({
        "type": "object",
        "properties": {
            "project": {"type": "string"},
            "paths": {"type": "array", "items": {"type": "string"}},
            "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]},
            "scopes": {"type": "string"},
        },
        "required": ["kind", "project"],
    });
    assert_eq!(folded, expected);
    assert_eq!(notes, ["Required arguments, by alternatives: paths and kind; or scopes and kind."]);
}

#[test]
fn parts_and_references_at_the_top_are_resolved() {
    let schema = json!({
        "$ref": "#/$defs/Args",
        "$defs": {
            "Args": {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]},
            "Base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "description": "Base."},
        },
        "not": {"required": ["c"]},
    });
    let (folded, notes) = folded(&schema);
    assert_eq!(folded["properties"], json!({"a": {"type": "string"}, "b": {"type": "integer"}}));
    assert_eq!((&folded["type"], &folded["required"]), (&json!("object"), &json!(["a", "b"])));
    assert_eq!(folded["description"], "Base.");
    assert_eq!(notes, ["not: {\"required\":[\"c\"]}"]);
    let optional =
        json!({"oneOf": [{"type": "null"}, {"type": "object", "properties": {"a": {}}}]});
    assert_eq!(
        super::tests::folded(&optional),
        (json!({"type": "object", "properties": {"a": {}}}), Vec::new())
    );
}

#[test]
fn what_other_languages_write_where_nothing_is_meant_is_left_out() {
    let schema = json!({
        "type": ["object", "null"],
        "properties": {
            "list": {"type": "array"},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
            "empty": {"type": "string", "enum": [], "format": null, "required": true, "default": null},
            "any": true,
            "old": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": false},
            "strange": {"type": "money", "properties": null, "description": 7},
            "gone": {"$ref": "#/$defs/nowhere", "description": "x"},
        },
        "required": null,
        "additionalProperties": null,
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {}},
            "pair": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            "empty": {"type": "string", "default": null},
            "any": {},
            "old": {"type": "number", "maximum": 9, "exclusiveMinimum": 0},
            "strange": {},
            "gone": {"description": "x"},
        },
    });
    assert_eq!(folded(&schema), (expected, Vec::new()));
}

#[test]
fn gemini_gets_no_keyword_that_its_list_lacks() {
    let schema = json!({
        "type": "object",
        "properties": {
            "kind": {"const": "a", "description": "Kind."},
            "code": {"type": "string", "pattern": "^a", "description": "Code."},
            "node": {"$ref": "#/$defs/node", "description": "Node."},
        },
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
        "required": ["kind", "unknown"],
    });
    let limits = KnownModels::default().tool_limits("gemini");
    let folded = portable(&schema, &limits).unwrap().schema;
    assert_eq!(folded["properties"]["kind"], json!({"enum": ["a"], "description": "Kind."}));
    assert_eq!(
        folded["properties"]["code"],
        json!({"type": "string", "description": "Code. (pattern: \"^a\")"})
    );
    assert_eq!(folded["properties"]["node"], json!({"$ref": "#/$defs/node"}));
    assert_eq!(folded["required"], json!(["kind"]));
}

#[test]
fn a_schema_without_a_form_is_refused_with_the_reason() {
    let deep =
        (0..100).fold(json!({}), |inner, _| json!({"type": "object", "properties": {"a": inner}}));
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
    for schema in [
        json!({"type": "array"}),
        json!({"anyOf": [{"type": "string"}, {"type": "array"}]}),
        deep,
        circle,
    ] {
        assert!(portable(&schema, &openai()).is_err(), "{schema}");
    }
    let names = json!({"type": "object", "properties": {"ünïcode": {"type": "string"}}});
    assert!(portable(&names, &openai()).is_ok());
    assert!(portable(&names, &KnownModels::default().tool_limits("anthropic")).is_err());
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": "array"})),
        Just(json!({"enum": []})),
        Just(json!({"const": 1, "type": "integer"})),
        Just(Value::Null),
        Just(json!(true)),
        Just(json!({"$ref": "#"})),
        Just(json!({"$ref": "#/properties/a"})),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3);
        let key = select(vec!["anyOf", "oneOf", "allOf", "items", "prefixItems", "required", "not"]);
        prop_oneof![
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| json!({"type": "object", "properties": {"a": a, "b": b}, "required": ["a", "b"]})),
            (key, list, inner.clone()).prop_map(|(key, list, one)| match key {
                "items" | "not" => json!({key: one, "type": "array"}),
                _ => json!({key: list}),
            }),
        ]
    })
}

proptest! {
    #[test]
    fn a_folded_schema_stays_as_it_is_and_has_nothing_that_is_refused(schema in any_schema()) {
        let openai = openai();
        for api in Api::ALL {
            let limits = &KnownModels::default().tool_limits(api.entry().tool_limits);
            let Ok(first) = portable(&schema, limits) else { continue };
            prop_assert_eq!(&first.schema["type"], "object");
            prop_assert!(!COMBINATIONS.iter().any(|name| first.schema.get(name).is_some()), "{}", first.schema);
            let second = portable(&first.schema, limits).unwrap();
            prop_assert_eq!(&second.schema, &first.schema);
            prop_assert!(second.notes.is_empty());
        }
        if is_plain(&schema, &openai) {
            prop_assert_eq!(&portable(&schema, &openai).unwrap().schema, &schema);
        }
    }
}
