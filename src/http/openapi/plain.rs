//! Makes derived schemas plain: an object is one object, and a union of tagged objects is one of components.

use serde_json::{Value, json};

use agui_protocol::JsonObject;

/// The unions of tagged objects: the name, the member that decides, and the end of the names of the objects.
const UNIONS: [(&str, &str, &str); 4] = [
    ("ContentPart", "type", "Part"),
    ("Event", "type", "Event"),
    ("Message", "role", "Message"),
    ("PartSource", "type", "Source"),
];

/// Changes the components of the document.
pub(super) fn make_plain(schemas: &mut JsonObject) {
    schemas.values_mut().for_each(make_schema_plain);
    for (name, member, ending) in UNIONS {
        if let Some(union) = schemas.get_mut(name) {
            let variants = split_union(union, member, ending);
            schemas.extend(variants);
        }
    }
    schemas.sort_keys();
}

fn make_schema_plain(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(make_schema_plain),
        Value::Object(members) => {
            members.values_mut().for_each(make_schema_plain);
            merge_parts(members);
            allow_no_null(members);
        }
        _ => {}
    }
}

/// Makes one object of the parts that `#[serde(flatten)]` and tags leave.
fn merge_parts(schema: &mut JsonObject) {
    let Some(Value::Array(parts)) = schema.shift_remove("allOf") else { return };
    for part in parts {
        let Value::Object(part) = part else { continue };
        for (name, value) in part {
            match (schema.get_mut(&name), value) {
                (Some(Value::Object(all)), Value::Object(further)) => all.extend(further),
                (Some(Value::Array(all)), Value::Array(further)) => all.extend(further),
                // The description of the whole wins over the description of a part.
                (Some(_), _) => {}
                (None, value) => drop(schema.insert(name, value)),
            }
        }
    }
}

/// A member that may be absent is never `null`, unless its description says what `null` means.
fn allow_no_null(schema: &mut JsonObject) {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, property) in properties {
        let Value::Object(property) = property else { continue };
        property.retain(|name, value| name != "default" || !value.is_null());
        let explains = property
            .get("description")
            .and_then(Value::as_str)
            .is_some_and(|text| text.contains("`null`"));
        if explains || required.iter().any(|required| required == name) {
            continue;
        }
        if let Some(Value::Array(types)) = property.get_mut("type") {
            types.retain(|of| of != "null");
            if let [only] = &mut types[..] {
                let only = only.take();
                property.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(schemas)) = property.get_mut("oneOf") {
            schemas.retain(|schema| schema["type"] != "null");
            if let [Value::Object(only)] = &mut schemas[..] {
                let only = std::mem::take(only);
                property.shift_remove("oneOf");
                property.extend(only);
            }
        }
    }
}

/// Returns the objects of a union as components, to which the union then refers.
fn split_union(union: &mut Value, member: &str, ending: &str) -> Vec<(String, Value)> {
    let Some(objects) = union["oneOf"].as_array_mut().map(std::mem::take) else {
        return Vec::new();
    };
    let (mut references, mut components) = (Vec::new(), Vec::new());
    let mut mapping = JsonObject::new();
    for object in objects {
        let Some(value) = object["properties"][member]["enum"][0].as_str().map(str::to_owned)
        else {
            continue;
        };
        let name = format!("{}{ending}", pascal_case(&value));
        let reference = format!("#/components/schemas/{name}");
        references.push(json!({ "$ref": reference }));
        mapping.insert(value, reference.into());
        components.push((name, object));
    }
    union["oneOf"] = references.into();
    union["discriminator"] = json!({ "propertyName": member, "mapping": mapping });
    components
}

/// Returns `TextMessageStart` for `TEXT_MESSAGE_START`.
pub(super) fn pascal_case(text: &str) -> String {
    let words = text.split('_').map(|word| match word.split_at_checked(1) {
        Some((first, rest)) => first.to_uppercase() + &rest.to_lowercase(),
        None => String::new(),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use utoipa::{PartialSchema as _, ToSchema};

    use super::*;
    use agui_protocol::{Event, TokenUsage};

    /// Not read: only its schema is.
    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Edit {
        /// `null` removes it.
        title: Option<String>,
        archived: Option<bool>,
        usage: Option<TokenUsage>,
        #[schema(required)]
        next: Option<String>,
    }

    fn plain(name: &str, schema: impl serde::Serialize) -> JsonObject {
        let mut schemas = JsonObject::from_iter([(name.to_owned(), json!(schema))]);
        make_plain(&mut schemas);
        schemas
    }

    #[test]
    fn a_member_that_may_be_absent_is_null_only_if_its_description_says_what_null_means() {
        let schemas = plain("Edit", Edit::schema());
        let properties = &schemas["Edit"]["properties"];
        assert_eq!(properties["title"]["type"], json!(["string", "null"]));
        assert_eq!(properties["archived"], json!({ "type": "boolean" }));
        assert_eq!(properties["usage"], json!({ "$ref": "#/components/schemas/TokenUsage" }));
        assert_eq!(properties["next"]["type"], json!(["string", "null"]), "it is always present");
        assert_eq!(
            plain("Usage", TokenUsage::schema())["Usage"]["properties"]["model"].get("default"),
            None
        );
    }

    #[test]
    fn each_event_is_one_object_and_its_type_selects_it() {
        let schemas = plain("Event", Event::schema());
        let mapping = &schemas["Event"]["discriminator"]["mapping"];
        assert_eq!(mapping["STEP_STARTED"], "#/components/schemas/StepStartedEvent");
        assert_eq!(mapping.as_object().map(JsonObject::len), Some(schemas.len() - 1));
        let event = &schemas["StepStartedEvent"];
        assert_eq!(event["required"], json!(["stepName", "type"]));
        assert_eq!(event["description"], "Begins a step, a named section of the run.");
        let mut members: Vec<_> = event["properties"].as_object().unwrap().keys().collect();
        members.sort();
        assert_eq!(
            members,
            ["metadata", "rawEvent", "stepName", "subagentRunId", "timestamp", "type"]
        );
    }
}
