//! The tool `ask_user`: the model asks the person, with a JSON Schema of its own for the reply.

use serde_json::{Value, json};

use crate::{
    FnTool, Question, Repeat, ToolContext, ToolError, ToolSpec, Validator, tool::object_schema,
};
use agui_protocol::JsonObject;

const MAX_QUESTION_CHARS: usize = 4000;

/// Returns the tool. The run ends with an interrupt, and the run with the reply gives it to the model.
pub fn ask_user() -> FnTool {
    let properties = json!({
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
    });
    let description = "Asks the user a question and waits for the answer. Use it when you cannot go on without \
                       something that only the user knows or decides. Ask for all that belongs together at once, \
                       with a schema.";
    let parameters = object_schema(properties, &["question"]);
    FnTool::from_spec(ToolSpec::new("ask_user", description, parameters), call).repeat(Repeat::Safe)
}

async fn call(mut arguments: JsonObject, cx: ToolContext) -> Result<String, ToolError> {
    let schema = arguments.remove("schema").unwrap_or_else(|| json!({ "type": "string" }));
    Validator::from_value(&schema)
        .map_err(|problem| ToolError::new(format!("the schema cannot be used: {problem}")))?;
    let text = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
    let reply = cx.ask(Question::new(text).key("answer").response_schema(schema)).await?;
    Ok(match reply {
        Value::String(text) => text,
        reply => reply.to_string(),
    })
}
