//! Checks the arguments of a call against the tool's JSON Schema, with messages from which a model can correct them, and
//! a person's reply against the schema of the question.
//!
//! Neither side is trusted: a schema can come from an MCP server or from a model, and arguments
//! come from a model that reads texts of strangers. `BoundedSchema` limits both.

use std::sync::Arc;

use serde_json::Value;

use super::arguments::CallArguments;
use agui_base::{
    permits::ANONYMOUS,
    repairs::{Partner, Repair, repaired},
    schema::{BoundedSchema, SchemaLimits},
    text::short_line,
};
use agui_protocol::JsonObject;

const VALUE_LIMITS: SchemaLimits = SchemaLimits { bytes: 16 * 1024, depth: 32 };
const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;

/// A compiled schema of a tool's arguments, or of a reply. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Validator {
    schema: BoundedSchema,
    /// The schema by which members are repaired.
    source: Arc<Value>,
}

impl Validator {
    /// Compiles a schema, which must describe an object. The keyword `pattern` takes regular expressions that can be
    /// matched in linear time, without look-around and back-references.
    ///
    /// # Errors
    /// The reason why the schema cannot be used.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let Value::Object(object) = schema else {
            return Err("a schema is a JSON object".to_owned());
        };
        if object.get("type").is_some_and(|kind| !kind.is_null() && kind != "object") {
            return Err(
                "the schema has to describe an object: it needs \"type\": \"object\"".to_owned()
            );
        }
        Self::compile(schema, SchemaLimits::TOOL)
    }

    /// Compiles the schema of a person's reply, which a model may have written.
    ///
    /// # Errors
    /// The reason why the schema cannot be used.
    pub fn from_value(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("a schema is a JSON object".to_owned());
        }
        Self::compile(schema, VALUE_LIMITS)
    }

    fn compile(schema: &Value, limits: SchemaLimits) -> Result<Self, String> {
        let mut source = schema.clone();
        if remove_empty(&mut source) {
            repaired(Partner::ToolServer, Repair::Null);
        }
        let source = Arc::new(source);
        let schema = BoundedSchema::new(&source, limits).map_err(|error| short_line(&error))?;
        Ok(Self { schema, source })
    }

    /// Reads and checks the arguments that a model wrote, and repairs their form. An empty text means no arguments.
    ///
    /// # Errors
    /// A message for the model that lists the problems.
    pub async fn check(&self, text: &str) -> Result<JsonObject, String> {
        self.read(&ANONYMOUS.into(), text).await.map(|read| read.object)
    }

    /// Reads and checks arguments like [`check`](Self::check), for an owner. Also returns the
    /// repairs.
    #[doc(hidden)]
    pub async fn read(&self, owner: &Arc<str>, text: &str) -> Result<CallArguments, String> {
        if text.len() > MAX_ARGUMENTS_BYTES {
            return Err(format!("The arguments are longer than {MAX_ARGUMENTS_BYTES} bytes."));
        }
        let CallArguments { object, repairs } =
            CallArguments::read(text).map_err(|problem| short_line(&problem))?;
        let (written, problems) = self.problems_of(owner, object).await;
        let read = CallArguments { object: written, repairs };
        let Some(problems) = problems else { return Ok(read) };
        if let Some(CallArguments { object, repairs }) = read.fitted(&self.source)
            && let (object, None) = self.problems_of(owner, object).await
        {
            return Ok(CallArguments { object, repairs });
        }
        Err(format!("The arguments do not fit the tool's schema:{problems}"))
    }

    /// Returns the object, with its problems.
    async fn problems_of(
        &self,
        owner: &Arc<str>,
        object: JsonObject,
    ) -> (JsonObject, Option<String>) {
        let value = Value::Object(object);
        let problems = self.problems(owner, &value).await;
        let Value::Object(object) = value else { return (JsonObject::new(), problems) };
        (object, problems)
    }

    /// Checks the reply of a person, or the answer of a model, for an owner.
    ///
    /// # Errors
    /// The problems, for a model.
    #[doc(hidden)]
    pub async fn check_value(&self, owner: &Arc<str>, value: &Value) -> Result<(), String> {
        self.problems(owner, value).await.map_or(Ok(()), Err)
    }

    /// Returns a list of the problems; `None` if the value fits.
    async fn problems(&self, owner: &Arc<str>, value: &Value) -> Option<String> {
        let (problems, more) = match self.schema.problems(owner, value).await {
            Ok(problems) => problems?,
            Err(reason) => return Some(format!("\n- {reason}")),
        };
        let lines = problems.iter().map(|problem| {
            let path = if problem.path.is_empty() { "(root)" } else { &problem.path };
            format!("\n- {}", short_line(&format!("{path}: {}", problem.text)))
        });
        let rest = if more { "\n- and more" } else { "" };
        Some(lines.chain([rest.to_owned()]).collect())
    }
}

/// The keywords whose value is an object with schemas by name.
const MAPS: &[&str] =
    &["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Removes keywords with the value `null`, which Go writes for an empty list or map, and empty lists in place of maps,
/// which PHP writes. Returns whether there was one.
fn remove_empty(schema: &mut Value) -> bool {
    let Value::Object(keywords) = schema else {
        return schema
            .as_array_mut()
            .is_some_and(|list| list.iter_mut().fold(false, |any, part| remove_empty(part) | any));
    };
    let is_value =
        |keyword: &str| matches!(keyword, "default" | "const" | "enum" | "examples" | "example");
    let count = keywords.len();
    let is_empty = |keyword: &str, value: &Value| {
        value.is_null() || (MAPS.contains(&keyword) && value.as_array().is_some_and(Vec::is_empty))
    };
    keywords.retain(|keyword, value| !is_empty(keyword, value) || is_value(keyword));
    let any = keywords.len() < count;
    keywords
        .iter_mut()
        .filter(|(keyword, _)| !is_value(keyword))
        .fold(any, |any, (_, value)| remove_empty(value) | any)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_list_of_php_is_an_empty_map() {
        let schema = json!({ "type": "object", "properties": [], "$defs": [], "required": [], "additionalProperties": true });
        assert!(check(&Validator::new(&schema).unwrap(), r#"{"a": 1}"#).is_ok());
        let nested = json!({ "properties": { "a": { "type": "object", "properties": [] }, "b": { "enum": [[]] } } });
        let validator = Validator::new(&nested).unwrap();
        assert!(check(&validator, r#"{"a": {}, "b": []}"#).is_ok());
        assert!(Validator::new(&json!({ "properties": ["a"] })).is_err());
    }

    #[test]
    fn null_in_place_of_a_keyword_is_left_out() {
        let schema = json!({
            "type": null, "required": null,
            "properties": {"n": {"type": "integer", "enum": [1, null], "required": null, "default": null}, "any": null},
            "anyOf": [{"properties": null}],
        });
        let validator = Validator::new(&schema).unwrap();
        assert!(check(&validator, r#"{"n": 1, "any": 2}"#).is_ok());
        assert!(check(&validator, r#"{"n": 2}"#).is_err());
    }

    fn check(validator: &Validator, text: &str) -> Result<JsonObject, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(validator.check(text))
    }

    fn weather() -> Validator {
        Validator::new(&json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "minLength": 1 },
                "days": { "type": "integer", "minimum": 1, "maximum": 7 },
                "at": { "type": "object", "properties": { "hour": { "type": "integer" } } }
            },
            "required": ["city"],
            "additionalProperties": false
        }))
        .unwrap()
    }

    #[test]
    fn valid_arguments_are_parsed() {
        assert_eq!(check(&weather(), r#"{"city":"Köln","days":2}"#).unwrap()["city"], "Köln");
        let nothing = Validator::new(&json!({})).unwrap();
        assert!(
            check(&nothing, "").unwrap().is_empty() && check(&nothing, " \n").unwrap().is_empty()
        );
    }

    #[test]
    fn errors_name_the_place_and_the_problem() {
        for (text, expected) in [
            ("", "(root): \"city\" is a required property"),
            (r#"{"city":"#, "not valid JSON"),
            ("[1]", "have to be a JSON object, not an array"),
            ("null", "(root): \"city\" is a required property"),
            (r#"{"city":"x","days":9}"#, "/days: the value is greater than the maximum of 7"),
            (r#"{"city":"x","at":{"hour":"9"}}"#, "/at/hour: the value is not of type \"integer\""),
            (r#"{"city":"x","sql":"'; --","b":1}"#, "(root): there is no argument sql, b"),
            (r#"{"city":""}"#, "/city: the value is shorter than 1 character"),
        ] {
            let error = check(&weather(), text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn errors_are_short_for_any_arguments() {
        let schema = json!({ "properties": {}, "additionalProperties": { "type": "integer" } });
        let validator = Validator::new(&schema).unwrap();
        let many: JsonObject = (0..50)
            .map(|n| (format!("{n}{}", "k".repeat(1000)), json!("v".repeat(1000))))
            .collect();
        let error = check(&validator, &Value::Object(many).to_string()).unwrap_err();
        assert!(error.len() < 2000 && error.ends_with("- and more"), "{error}");
        assert!(
            check(&validator, &" ".repeat(MAX_ARGUMENTS_BYTES + 1))
                .unwrap_err()
                .contains("longer than")
        );
        let deep = format!("{}{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert!(check(&validator, &deep).unwrap_err().contains("recursion limit"));
    }

    #[test]
    fn unusable_schemas_are_refused_with_the_reason() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "not": deep });
        }
        for (schema, expected) in [
            (json!([]), "JSON object"),
            (json!({ "type": "string" }), "\"type\": \"object\""),
            (json!({ "type": ["object", "null"] }), "\"type\": \"object\""),
            (json!({ "properties": { "a": { "type": "strange" } } }), "/properties/a/type"),
            (json!({ "properties": { "a": { "pattern": "(" } } }), "/properties/a/pattern"),
            (
                json!({ "properties": { "a": { "$ref": "http://127.0.0.1:1/schema.json" } } }),
                "127.0.0.1",
            ),
            (json!({ "properties": { "a": { "$ref": "file:///etc/passwd" } } }), "/etc/passwd"),
            (json!({ "description": "x".repeat(SchemaLimits::TOOL.bytes) }), "longer than"),
            (deep, "deeper than 64"),
        ] {
            let error = Validator::new(&schema).unwrap_err();
            assert!(error.contains(expected) && error.len() < 1200, "{error}");
        }
    }

    #[test]
    fn recursive_references_within_a_schema_are_allowed() {
        let tree =
            json!({ "properties": { "left": { "$ref": "#" } }, "additionalProperties": false });
        let validator = Validator::new(&tree).unwrap();
        check(&validator, r#"{"left":{"left":{}}}"#).unwrap();
        assert!(
            check(&validator, r#"{"left":{"right":{}}}"#)
                .unwrap_err()
                .contains("/left: there is no argument right")
        );
        // A schema that only refers to itself must not hang or overflow the stack.
        let _ = Validator::new(&json!({ "$ref": "#" })).map(|circle| check(&circle, "{}"));
    }
}
