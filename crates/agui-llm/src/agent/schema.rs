//! The schemas of an agent's settings: of its final answers, which are parsed and checked, and of the state.

use std::sync::Arc;

use serde_json::Value;

use crate::transport::SetupError;
use agui_protocol::JsonObject;
use agui_tools::Validator;

/// Bounds the time of a check.
const MAX_ANSWER_BYTES: usize = 1 << 20;
const FENCE: &str = "```";

pub(super) struct CheckedSchema {
    pub(super) schema: Arc<JsonObject>,
    pub(super) validator: Validator,
}

impl CheckedSchema {
    /// `option` is the name of the setting.
    pub(super) fn new(option: &'static str, schema: JsonObject) -> Result<Arc<Self>, SetupError> {
        let validator = Validator::new(&Value::Object(schema.clone()));
        let validator = validator.map_err(|problem| SetupError::Option { option, problem })?;
        Ok(Arc::new(Self { schema: Arc::new(schema), validator }))
    }

    /// Returns the value of an answer, or a problem that the model can correct.
    pub(super) async fn parse(&self, owner: &Arc<str>, text: &str) -> Result<Value, String> {
        if text.len() > MAX_ANSWER_BYTES {
            return Err(format!("the answer is longer than {MAX_ANSWER_BYTES} bytes"));
        }
        // The parser refuses more than 128 levels.
        let value: Value = serde_json::from_str(without_fence(text))
            .map_err(|error| format!("the answer is not JSON: {error}"))?;
        match self.validator.check_value(owner, &value).await {
            Ok(()) => Ok(value),
            Err(problems) => Err(format!("the answer does not fit the schema:{problems}")),
        }
    }
}

/// Removes the Markdown around JSON, which models without structured output often write.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((_language, json)) => json,
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn format(schema: Value) -> Result<Arc<CheckedSchema>, SetupError> {
        let Value::Object(schema) = schema else { panic!("{schema}") };
        CheckedSchema::new("response_schema", schema)
    }

    #[tokio::test]
    async fn an_answer_is_json_that_fits_the_schema() {
        let number = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let format = format(number).unwrap();
        for text in
            [r#"{"n":1}"#, " {\"n\": 1}\n", "```json\n{\"n\":1}\n```", "```\n{\"n\":1}```\n"]
        {
            assert_eq!(
                format.parse(&"key:ann".into(), text).await,
                Ok(json!({ "n": 1 })),
                "{text}"
            );
        }
        for (text, problem) in [
            ("", "not JSON"),
            ("Here it is: {\"n\":1}", "not JSON"),
            (r#"{"n":1"#, "not JSON"),
            ("```", "not JSON"),
            (r#"{"n":"1"}"#, "/n: the value is not of type \"integer\""),
            ("[1]", "(root): "),
            (&" ".repeat(MAX_ANSWER_BYTES + 1), "longer than"),
        ] {
            let error = format.parse(&"key:ann".into(), text).await.unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    #[test]
    fn an_unusable_schema_is_refused() {
        let error = format(json!({ "type": "string" })).map(drop).unwrap_err();
        assert!(error.to_string().starts_with("`response_schema`: "), "{error}");
    }
}
