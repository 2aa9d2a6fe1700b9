//! The tool `ask_user`: the model asks the person, with a JSON Schema of its own for the answer.

use serde_json::{Value, json};

use crate::{
    protocol::JsonObject,
    tools::{FnTool, Question, ToolContext, ToolError, ToolSpec, Validator},
};

const MAX_QUESTION_CHARS: usize = 4000;

/// Returns the tool. The run ends with an interrupt, and the run with the answer gives it to the model.
pub fn ask_user() -> FnTool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "question": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_QUESTION_CHARS,
                "description": "The question, in the user's language."
            },
            "schema": {
                "type": "object",
                "description": "The JSON Schema of the answer, from which the user gets a form, such as \
                                {\"type\": \"object\", \"properties\": {\"size\": {\"type\": \"string\", \
                                \"enum\": [\"S\", \"L\"]}}, \"required\": [\"size\"]}. Without it, the answer \
                                is a text."
            }
        },
        "required": ["question"],
        "additionalProperties": false
    });
    let description = "Asks the user a question and waits for the answer. Use it when you cannot go on without \
                       something that only the user knows or decides. Ask for all that belongs together at once, \
                       with a schema.";
    FnTool::of_spec(ToolSpec::new("ask_user", description, parameters), call)
}

async fn call(mut arguments: JsonObject, cx: ToolContext) -> Result<String, ToolError> {
    let schema = arguments.remove("schema").unwrap_or_else(|| json!({ "type": "string" }));
    let validator = Validator::of_answer(&schema)
        .map_err(|problem| ToolError::new(format!("the schema cannot be used: {problem}")))?;
    let text = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
    let answer = cx.ask(Question::new(text).key("answer").response_schema(schema)).await?;
    // A server that stores no threads does not know the question, and did not check the answer.
    validator
        .check_answer(&answer)
        .await
        .map_err(|problem| ToolError::new(format!("the user's answer does not fit the schema: {problem}")))?;
    Ok(match answer {
        Value::String(text) => text,
        answer => answer.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{protocol::MessageContent, tools::Tool as _};

    async fn call(arguments: Value) -> (Result<MessageContent, ToolError>, ToolContext) {
        let cx = ToolContext::for_test("ask_user");
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        (ask_user().call(arguments, &cx).await, cx)
    }

    #[tokio::test]
    async fn a_question_becomes_an_interrupt_with_its_schema() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let (result, cx) = call(json!({ "question": "How many?", "schema": schema })).await;
        assert!(result.unwrap_err().is_question());
        let [interrupt] = <[_; 1]>::try_from(cx.take_questions()).unwrap();
        assert_eq!((interrupt.reason.as_str(), interrupt.message.as_deref()), ("input_required", Some("How many?")));
        assert_eq!(interrupt.response_schema.map(Value::Object), Some(schema));
        let (_, cx) = call(json!({ "question": "Which?" })).await;
        assert_eq!(cx.take_questions()[0].response_schema.as_ref().unwrap()["type"], "string");
    }

    #[tokio::test]
    async fn an_unusable_schema_is_refused_with_the_reason() {
        let deep = (0..40).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }));
        for (schema, problem) in [
            (json!({ "type": "txt" }), "/type"),
            (json!({ "$ref": "https://example.com/schema.json" }), "example.com"),
            (json!({ "type": "string", "pattern": "(" }), "/pattern"),
            (json!({ "type": "string", "description": "x".repeat(20_000) }), "longer than"),
            (deep, "deeper than"),
        ] {
            let (result, cx) = call(json!({ "question": "?", "schema": schema })).await;
            let error = result.unwrap_err();
            assert!(!error.is_question() && error.message().contains(problem), "{problem}: {error:?}");
            assert!(cx.take_questions().is_empty());
        }
    }
}
