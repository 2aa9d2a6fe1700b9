use serde_json::json;

use super::*;
use agui_protocol::PartSource;

fn messages(json: Value) -> Vec<Message> {
    serde_json::from_value(json).unwrap()
}

fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::Call(ToolCall::new(id, name, arguments))
}

fn assistant(blocks: Vec<Block>) -> ModelStep {
    ModelStep::Assistant(blocks)
}

fn user(text: &str) -> ModelStep {
    ModelStep::User(vec![ContentPart::text(text)])
}

fn result(id: &str, name: &str, content: &str, failed: bool) -> ToolResult {
    ToolResult { call_id: id.into(), name: name.into(), content: content.into(), failed }
}

fn tool_call(id: &str) -> Value {
    json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } })
}

#[test]
fn a_conversation_becomes_steps() {
    let steps = steps(&messages(json!([
        { "id": "1", "role": "developer", "content": "Be brief." },
        { "id": "2", "role": "system", "content": "Be kind." },
        { "id": "3", "role": "user", "content": "Weather?" },
        { "id": "4", "role": "reasoning", "content": "hm", "encryptedValue": "sig", "metadata": { "agui-server.provider": "anthropic" } },
        { "id": "5", "role": "assistant", "content": "I look.", "toolCalls": [tool_call("c")] },
        { "id": "6", "role": "tool", "toolCallId": "c", "content": "sunny" },
        { "id": "7", "role": "assistant", "content": "Sunny!" },
    ])));
    let thought = ModelReasoning {
        text: "hm".into(),
        artefact: Some("sig".into()),
        redacted: false,
        provider: Some("anthropic".into()),
    };
    assert_eq!(
        steps,
        [
            ModelStep::Instructions("Be brief.".into()),
            ModelStep::Instructions("Be kind.".into()),
            user("Weather?"),
            assistant(vec![
                Block::Reasoning(thought),
                Block::Text("I look.".into()),
                call("c", "f", "{}")
            ]),
            ModelStep::ToolResults(vec![result("c", "f", "sunny", false)]),
            assistant(vec![Block::Text("Sunny!".into())]),
        ]
    );
}

#[test]
fn the_artefact_of_a_text_follows_it_if_its_provider_is_known() {
    let blocks = |metadata: Value| {
        let message = json!({ "id": "2", "role": "assistant", "content": "Hi.", "encryptedValue": "sig", "metadata": metadata });
        let steps =
            steps(&messages(json!([{ "id": "1", "role": "user", "content": "Hi" }, message])));
        let ModelStep::Assistant(blocks) = &steps[1] else { panic!("{steps:?}") };
        blocks.clone()
    };
    let hidden = ModelReasoning {
        text: String::new(),
        artefact: Some("sig".into()),
        redacted: true,
        provider: Some("gemini".into()),
    };
    let text = || Block::Text("Hi.".into());
    assert_eq!(
        blocks(json!({ "agui-server.provider": "gemini" })),
        [text(), Block::Reasoning(hidden)]
    );
    assert_eq!(blocks(json!({})), [text()]);
}

#[test]
fn calls_in_separate_messages_become_one_step_followed_by_its_results() {
    let steps = steps(&messages(json!([
        { "id": "a", "role": "assistant", "toolCalls": [tool_call("1")] },
        { "id": "b", "role": "assistant", "toolCalls": [tool_call("2")] },
        { "id": "r2", "role": "tool", "toolCallId": "2", "content": "two" },
        { "id": "u", "role": "user", "content": "hurry" },
        { "id": "r1", "role": "tool", "toolCallId": "1", "content": "one" },
    ])));
    let results = vec![result("1", "f", "one", false), result("2", "f", "two", false)];
    assert_eq!(
        steps,
        [
            assistant(vec![call("1", "f", "{}"), call("2", "f", "{}")]),
            ModelStep::ToolResults(results),
            user("hurry")
        ]
    );
}

#[test]
fn messages_of_subagents_and_activities_and_orphaned_results_are_left_out() {
    let steps = steps(&messages(json!([
        { "id": "a", "role": "activity", "activityType": "PLAN", "content": { "x": 1 } },
        { "id": "b", "role": "assistant", "content": "by a subagent", "subagentRunId": "s" },
        { "id": "c", "role": "tool", "toolCallId": "unknown", "content": "orphan" },
        { "id": "d", "role": "assistant" },
        { "id": "e", "role": "reasoning", "content": "for nothing" },
        { "id": "f", "role": "user", "content": "" },
        { "id": "g", "role": "system", "content": " " },
        { "id": "h", "role": "user", "content": [{ "type": "text", "text": "" }, { "type": "text", "text": "hi" }] },
    ])));
    assert_eq!(steps, [user("hi")]);
}

#[test]
fn a_call_without_a_result_gets_one() {
    let history = messages(json!([
        { "id": "a", "role": "assistant", "toolCalls": [tool_call("1"), tool_call("2")] },
        { "id": "r", "role": "tool", "toolCallId": "2", "content": "two" },
        { "id": "u", "role": "user", "content": "so?" },
    ]));
    let ModelStep::ToolResults(results) = &steps(&history)[1] else { panic!() };
    assert_eq!(results[0], result("1", "f", UNANSWERED, true));
    assert_eq!(
        open_calls(&history[..2]).iter().map(|(call, _)| call.id.as_str()).collect::<Vec<_>>(),
        ["1"]
    );
}

#[test]
fn failed_results_are_marked_and_edited_arguments_replace_the_models() {
    let steps = steps(&messages(json!([
        { "id": "a", "role": "assistant", "toolCalls": [tool_call("1"), tool_call("2"), tool_call("3")] },
        { "id": "r1", "role": "tool", "toolCallId": "1", "content": "", "error": "too far" },
        { "id": "r2", "role": "tool", "toolCallId": "2", "content": "declined", "metadata": { "agui-server.failed": true } },
        { "id": "r3", "role": "tool", "toolCallId": "3", "content": "done", "metadata": { "agui-server.editedArgs": { "n": 2 } } },
    ])));
    let [ModelStep::Assistant(said), ModelStep::ToolResults(results)] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(said[2], call("3", "f", r#"{"n":2}"#));
    let expected = [("1", "Error: too far", true), ("2", "declined", true), ("3", "done", false)]
        .map(|(id, text, failed)| result(id, "f", text, failed));
    assert_eq!(results[..], expected);
}

#[test]
fn files_in_data_urls_are_data_in_messages_and_results() {
    let image = json!([{ "type": "document", "source": { "type": "url", "value": "data:image/png;base64,AA==" } }]);
    let steps = steps(&messages(json!([
        { "id": "u", "role": "user", "content": image },
        { "id": "a", "role": "assistant", "toolCalls": [tool_call("1")] },
        { "id": "r", "role": "tool", "toolCallId": "1", "content": image },
    ])));
    let data = PartSource::Data { value: "AA==".to_owned(), mime_type: "image/png".to_owned() };
    let [ModelStep::User(parts), _, ModelStep::ToolResults(results)] = &steps[..] else {
        panic!("{steps:?}")
    };
    assert_eq!(parts[..], [ContentPart::image(data)]);
    assert_eq!(results[0].content, parts.clone().into());
}

#[test]
fn a_repeated_call_id_is_left_out() {
    let steps = steps(&messages(json!([
        { "id": "a", "role": "assistant", "toolCalls": [tool_call("1")] },
        { "id": "r", "role": "tool", "toolCallId": "1", "content": "one" },
        { "id": "b", "role": "assistant", "content": "again", "toolCalls": [tool_call("1")] },
    ])));
    assert_eq!(steps.len(), 3);
    assert_eq!(steps[2], assistant(vec![Block::Text("again".into())]));
}

#[test]
fn hidden_reasoning_is_recognised_by_metadata_type_or_missing_text() {
    for (message, redacted) in [
        (json!({ "content": "", "encryptedValue": "x" }), true),
        (
            json!({ "content": "", "encryptedValue": "x", "metadata": { "agui-server.redacted": false } }),
            false,
        ),
        (
            json!({ "content": "", "encryptedValue": "x", "metadata": { "agui-server.provider": "anthropic" } }),
            false,
        ),
        (json!({ "content": "text", "encryptedValue": "x" }), false),
        (
            json!({ "content": "", "encryptedValue": "x", "encryptedValueType": "anthropic.signature" }),
            false,
        ),
        (
            json!({ "content": "", "encryptedValue": "x", "encryptedValueType": "anthropic.redacted_thinking" }),
            true,
        ),
    ] {
        let mut message = message;
        message["id"] = "r".into();
        message["role"] = "reasoning".into();
        let [Message::Reasoning(m)] = &messages(json!([message]))[..] else { panic!() };
        assert_eq!(reasoning(m).redacted, redacted, "{message}");
        let is_typed = message.get("encryptedValueType").is_some()
            || message.get("metadata").is_some_and(|m| m.get("agui-server.provider").is_some());
        assert_eq!(reasoning(m).provider.as_deref(), is_typed.then_some("anthropic"), "{message}");
    }
}

#[test]
fn a_summary_takes_the_place_of_its_messages_and_instructions_stay() {
    let mut talk = messages(json!([
        { "id": "1", "role": "system", "content": "Be kind." },
        { "id": "2", "role": "user", "content": "Weather?" },
        { "id": "3", "role": "assistant", "toolCalls": [tool_call("c")] },
        { "id": "4", "role": "tool", "toolCallId": "c", "content": "sunny" },
        { "id": "5", "role": "user", "content": "And now?" },
    ]));
    let (summary, _) = summary::stored("It is sunny.".to_owned(), &talk[..4]).unwrap();
    talk.push(summary);
    let [ModelStep::Instructions(kind), ModelStep::User(parts)] = &steps(&talk)[..] else {
        panic!("{:?}", steps(&talk))
    };
    assert_eq!(kind, "Be kind.");
    let [ContentPart::Text(note), now] = &parts[..] else { panic!("{parts:?}") };
    assert!(
        note.text.starts_with("[Note of the server") && note.text.ends_with("It is sunny."),
        "{}",
        note.text
    );
    assert_eq!(*now, ContentPart::text("And now?"));
}

#[test]
fn a_file_that_was_handed_over_comes_with_the_next_message_of_the_user() {
    let file = |id: &str, content: Value| json!({ "id": id, "role": "activity", "activityType": "agui-server.file", "content": content });
    let (steps, expected) = (
        steps(&messages(json!([
            { "id": "1", "role": "user", "content": "A cat!" },
            { "id": "2", "role": "assistant", "toolCalls": [tool_call("c")] },
            file("3", json!({ "name": "cat.png", "mimeType": "image/png", "url": "data:image/png;base64,iVBORw0KGgo=" })),
            { "id": "4", "role": "tool", "toolCallId": "c", "content": "done" },
            file("5", json!({ "name": "a \"b\".csv", "mimeType": "text/csv", "url": "data:text/csv;base64,AA==" })),
            file("6", json!({ "mimeType": "image/png", "url": "https://elsewhere.example/" })),
            { "id": "7", "role": "assistant", "content": "Here." },
            { "id": "8", "role": "user", "content": "Darker!" },
        ]))),
        [
            "[Note of the server, not of the user: you or one of your tools have handed a file over to the user: \"cat.png\", image/png. It is the next attachment.]",
            "[Note of the server, not of the user: you or one of your tools have handed a file over to the user: \"a  b .csv\", text/csv.]",
            "[Note of the server, not of the user: you or one of your tools have handed a file over to the user: image/png.]",
        ],
    );
    let source =
        PartSource::Data { value: "iVBORw0KGgo=".to_owned(), mime_type: "image/png".to_owned() };
    let [cat, csv, other] = expected.map(ContentPart::text);
    let parts = vec![cat, ContentPart::image(source), csv, other, ContentPart::text("Darker!")];
    let last = ModelStep::User(parts);
    let done = ModelStep::ToolResults(vec![result("c", "f", "done", false)]);
    let calls = assistant(vec![call("c", "f", "{}")]);
    assert_eq!(
        steps,
        [user("A cat!"), calls, done, assistant(vec![Block::Text("Here.".to_owned())]), last]
    );
}
