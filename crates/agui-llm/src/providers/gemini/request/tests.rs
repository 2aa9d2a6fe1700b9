use std::sync::Arc;

use super::*;
use crate::ModelReasoning;
use agui_protocol::{ContentPart, MediaPart, PartSource, ToolCall};
use agui_tools::ToolSpec;

fn options(model: &str) -> ModelOptions {
    ModelOptions { model: model.to_owned(), ..ModelOptions::default() }
}

fn contents(model: &str, steps: Vec<ModelStep>) -> Value {
    body(&options(model), &ModelRequest { steps, ..ModelRequest::default() }).json["contents"]
        .take()
}

fn user(said: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(said)])
}

fn assistant(blocks: Vec<Block>) -> ModelStep {
    ModelStep::Assistant(blocks)
}

fn call(id: &str, artefact: Option<&str>) -> Block {
    let mut call = ToolCall::new(id, "f", "{\"x\": 1}");
    call.encrypted_value = artefact.map(str::to_owned);
    Block::Call(call)
}

fn reasoning(text: &str, artefact: &str) -> Block {
    Block::Reasoning(ModelReasoning {
        text: text.to_owned(),
        artefact: Some(artefact.to_owned()),
        ..ModelReasoning::default()
    })
}

fn results(ids: &[&str]) -> ModelStep {
    let result = |id: &&str| ToolResult {
        call_id: (*id).into(),
        name: "f".to_owned(),
        content: "one".into(),
        failed: id.starts_with("bad"),
    };
    ModelStep::ToolResults(ids.iter().map(result).collect())
}

#[test]
fn a_request_has_conversation_tools_and_options() {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "number"}}});
    let tool = ToolSpec {
        name: "f".to_owned(),
        description: "does".to_owned(),
        parameters: parameters.clone(),
    };
    let mut options = options("gemini-2.0-flash");
    (options.temperature, options.max_tokens, options.frequency_penalty) =
        (Some(0.5), Some(9), Some(1.0));
    options.service_tier = Some("flex".to_owned());
    let request = ModelRequest {
        system: vec!["be kind".to_owned(), " ".to_owned()],
        steps: vec![
            ModelStep::Instructions("be brief".to_owned()),
            user("hi"),
            assistant(vec![Block::Text("well".to_owned()), call("a", None), call("bad", None)]),
            results(&["a", "bad"]),
            ModelStep::Instructions("be good".to_owned()),
            user("go on"),
        ],
        tools: Arc::new([tool]),
        tool_choice: ToolChoice::Tool("f".to_owned()),
        ..ModelRequest::default()
    };
    let sent = |id: &str| json!({"functionCall": {"id": id, "name": "f", "args": {"x": 1}}});
    let response = |id: &str, key: &str| json!({"functionResponse": {"id": id, "name": "f", "response": {key: "one"}}});
    let expected = json!({
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "well"}, sent("a"), sent("bad")]},
            {"role": "user", "parts": [response("a", "output"), response("bad", "error")]},
            {"role": "user", "parts": [
                {"text": "<system-instructions>\nbe good\n</system-instructions>"},
                {"text": "go on"},
            ]},
        ],
        "systemInstruction": {"parts": [{"text": "be kind"}, {"text": "be brief"}]},
        "tools": [{"functionDeclarations": [
            {"name": "f", "description": "does", "parametersJsonSchema": parameters},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "generationConfig": {"maxOutputTokens": 9, "temperature": 0.5, "frequencyPenalty": 1.0},
        "serviceTier": "flex",
    });
    assert_eq!(body(&options, &request).json, expected);
}

#[test]
fn the_first_call_of_a_step_is_signed_for_models_that_require_it() {
    let steps = |artefact| {
        vec![
            user("hi"),
            assistant(vec![call("a", artefact), call("b", None)]),
            results(&["a", "b"]),
        ]
    };
    let signatures = |model: &str, artefact| {
        let contents = contents(model, steps(artefact));
        [0, 1].map(|part| contents[1]["parts"][part]["thoughtSignature"].clone())
    };
    let own = Some("gemini:call:sig");
    assert_eq!(signatures("gemini-3.8-flash", own), [json!("sig"), Value::Null]);
    assert_eq!(signatures("gemini-2.5-flash", own), [json!("sig"), Value::Null]);
    assert_eq!(signatures("gemini-3.8-flash", None), [json!(PLACEHOLDER), Value::Null]);
    assert_eq!(
        signatures("gemini-3.8-flash", Some("{\"x\":1}")),
        [json!(PLACEHOLDER), Value::Null]
    );
    assert_eq!(signatures("gemini-2.5-flash", None), [Value::Null, Value::Null]);
}

#[test]
fn thoughts_of_others_and_thoughts_alone_are_left_out() {
    let own = "gemini:thought:[2,[[0,2,\"s\"]]]";
    let thought = json!({"text": "hm", "thoughtSignature": "s", "thought": true});
    let sent = |blocks| {
        contents("gemini-3.8-flash", vec![user("hi"), assistant(blocks), user("so")])[1]["parts"]
            .take()
    };
    let text = || Block::Text("well".to_owned());
    assert_eq!(sent(vec![reasoning("hm", own), text()]), json!([thought, {"text": "well"}]));
    assert_eq!(sent(vec![reasoning("hm", "other"), text()]), json!([{"text": "well"}]));
    assert_eq!(sent(vec![reasoning("changed", own), text()]), json!([{"text": "well"}]));
    let signed = json!([{"text": "well", "thoughtSignature": "t"}]);
    assert_eq!(sent(vec![text(), reasoning("", "gemini:text:[4,[[0,4,\"t\"]]]")]), signed);
    let alone = vec![
        user("hi"),
        assistant(vec![reasoning("hm", own), Block::Text(String::new())]),
        user("so"),
    ];
    let expected = json!([{"role": "user", "parts": [{"text": "hi"}, {"text": "so"}]}]);
    assert_eq!(contents("gemini-3.8-flash", alone), expected);
}

#[test]
fn media_of_a_result_are_in_it_or_follow_it() {
    let image: MediaPart =
        PartSource::Data { value: "AA==".to_owned(), mime_type: "image/png".to_owned() }.into();
    let content = vec![ContentPart::text("see"), ContentPart::Image(image)];
    let result = ToolResult {
        call_id: "a".into(),
        name: "f".to_owned(),
        content: content.into(),
        failed: false,
    };
    let steps =
        vec![user("hi"), assistant(vec![call("a", None)]), ModelStep::ToolResults(vec![result])];
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "AA=="}});
    let response = json!({"id": "a", "name": "f", "response": {"output": "see"}});
    let old = contents("gemini-2.5-flash", steps.clone());
    assert_eq!(old[2]["parts"], json!([{"functionResponse": response}]));
    assert_eq!(old[3], json!({"role": "user", "parts": [inline]}));
    let new = contents("gemini-3.8-flash", steps);
    assert_eq!(new[2]["parts"][0]["functionResponse"]["parts"], json!([inline]));
    assert_eq!(new.as_array().map(Vec::len), Some(3));
}

#[test]
fn a_schema_is_an_instruction_where_it_excludes_tools() {
    let Value::Object(schema) = json!({"type": "object"}) else { unreachable!() };
    let tool =
        ToolSpec { name: "f".to_owned(), description: String::new(), parameters: Value::Null };
    let request = |tools: Vec<ToolSpec>| ModelRequest {
        response_schema: Some(Arc::new(schema.clone())),
        tools: tools.into(),
        ..ModelRequest::default()
    };
    let structured =
        json!({"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}});
    for (model, tools) in [("gemini-2.5-flash", vec![]), ("gemini-3.8-flash", vec![tool.clone()])] {
        assert_eq!(
            body(&options(model), &request(tools)).json["generationConfig"],
            structured,
            "{model}"
        );
    }
    let old = body(&options("gemini-2.5-flash"), &request(vec![tool])).json;
    assert_eq!(old["generationConfig"], Value::Null);
    assert!(
        old["systemInstruction"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("{\"type\":\"object\"}")
    );
}
