//! Tool calls in the forms of all servers.

use super::*;
use crate::Artefact;

fn calls(pieces: &[Value]) -> Vec<(String, String, String)> {
    let deltas =
        deltas(&pieces.iter().map(|piece| json!({"tool_calls": piece})).collect::<Vec<_>>());
    let mut calls = Vec::new();
    for event in &deltas {
        match event {
            Start { index, block: BlockStart::Call { id, name } } => {
                assert_eq!(*index, calls.len());
                calls.push((id.to_string(), name.clone(), String::new()));
            }
            Delta { index, text } => calls[*index].2.push_str(text),
            End { index, artefact: None } => assert!(*index < calls.len()),
            Stop(reason) => assert_eq!(*reason, StopReason::Calls),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(deltas.iter().filter(|event| matches!(event, End { .. })).count(), calls.len());
    calls
}

fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[test]
fn calls_in_openais_form_may_interleave() {
    let made = calls(&[
        json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]),
        json!([{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]),
        json!([{"index": 0, "function": {"arguments": "{\"x\""}}, {"index": 1, "function": {"arguments": "{"}}]),
        json!([{"index": 1, "function": {"arguments": "}"}}, {"index": 0, "function": {"arguments": ":1}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]);
}

#[test]
fn calls_are_told_apart_in_the_forms_of_other_servers() {
    // The name and the id in every piece.
    let made = calls(&[
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":\"}"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "\\\"{"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "\"}"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":\"}\\\"{\"}")]);
    // A new id in every piece.
    let made = calls(&[
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x\":"}}]),
        json!([{"index": 0, "id": "b", "function": {"name": "f", "arguments": "1}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":1}")]);
    // All calls have the index 0, or no index.
    for index in [json!(0), json!(null)] {
        let made = calls(&[
            json!([{"index": index, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
            json!([{"index": index, "id": "b", "function": {"name": "f", "arguments": "{}"}},
                   {"index": index, "id": "c", "function": {"name": "g", "arguments": ""}}]),
            json!([{"index": index, "id": "d", "function": {"name": "g", "arguments": ""}}]),
        ]);
        assert_eq!(
            made,
            [
                call("a", "f", "{}"),
                call("b", "f", "{}"),
                call("c", "g", "{}"),
                call("d", "g", "{}")
            ],
            "{index}"
        );
    }
    // Arguments as an object, all forms of missing arguments, and a list with an empty piece at its end.
    let made = calls(&[
        json!([{"id": "a", "function": {"name": "f", "arguments": {"x": [1]}}}]),
        json!([{"id": "b", "function": {"name": "f", "arguments": null}}, {"id": "c", "function": {"name": "f"}}]),
        json!([{"function": {"name": null, "arguments": ""}}, {"index": 7}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":[1]}"), call("b", "f", "{}"), call("c", "f", "{}")]);
    // No index; the pieces have the call's id, or nothing.
    let made = calls(&[
        json!([{"id": "a", "function": {"name": "f", "arguments": "{"}}]),
        json!([{"id": "b", "function": {"name": "g", "arguments": "{"}}]),
        json!([{"id": "a", "function": {"arguments": "\"x\":1}"}}]),
        json!([{"function": {"arguments": "}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]);
    // The name after the arguments.
    let made = calls(&[
        json!([{"index": 0, "function": {"arguments": "{"}}]),
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{}")]);
}

#[test]
fn a_call_without_a_unique_id_gets_one() {
    let made = calls(&[
        json!([{"function": {"name": "f", "arguments": "{}"}}, {"id": "", "function": {"name": "f", "arguments": "{}"}}]),
        json!([{"index": 5, "id": "x", "function": {"name": "g", "arguments": "{}"}}]),
        json!([{"index": 6, "id": "x", "function": {"name": "g", "arguments": "{}"}}]),
    ]);
    assert_eq!(made.len(), 4);
    assert!(made[0].0.starts_with("call_") && made[1].0.starts_with("call_"));
    assert_eq!(made[2].0, "x");
    assert!(made[3].0.starts_with("call_"), "a repeated id is replaced");
    assert_ne!(made[0].0, made[1].0);
}

#[test]
fn a_custom_tool_gets_its_input_as_an_argument() {
    let made = calls(&[
        json!([{"index": 0, "id": "a", "type": "custom", "custom": {"name": "sql", "input": ""}}]),
        json!([{"index": 0, "custom": {"input": "SELECT \"a"}}]),
        json!([{"index": 0, "custom": {"input": "\""}}]),
        json!([{"index": 1, "id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}}]),
    ]);
    assert_eq!(made, [call("a", "sql", r#"{"input":"SELECT \"a\""}"#), call("b", "f", "{}")]);
}

#[test]
fn a_tool_that_only_the_provider_can_run_is_named() {
    let searched = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "type": "web_search", "web_search": {}}]}}]});
    let end = |reason: &str| {
        json!({"choices": [{"delta": {"content": "found"}, "finish_reason": reason}]}).to_string()
    };
    let (events, whole) = decode(&[searched.to_string(), end("stop")]).unwrap();
    assert!(whole);
    assert_eq!(blocks(&events), [(false, "found".to_owned())]);
    let (events, whole) = decode(&[searched.to_string(), end("tool_calls")]).unwrap();
    assert!(whole, "an answer with text is one");
    assert_eq!(blocks(&events), [(false, "found".to_owned())]);
    // The answer consists of the call, for each stop reason.
    let reason =
        |reason: &str| json!({"choices": [{"delta": {}, "finish_reason": reason}]}).to_string();
    for end in [reason("tool_calls"), reason("stop"), "[DONE]".to_owned()] {
        let failure = decode(&[searched.to_string(), end.clone()]).unwrap_err();
        let DecodeFault::Failed { kind: FailureKind::Other, message } = failure else {
            panic!("{failure:?}")
        };
        assert!(message.contains("\"web_search\""), "{end}: {message}");
    }
}

#[test]
fn extra_content_of_a_call_is_the_artefact_at_its_end() {
    let extra = json!({"google": {"thought_signature": "b64=="}});
    let events = deltas(&[
        json!({"content": "I call"}),
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}, "extra_content": extra}]}),
        json!({"content": "on"}),
    ]);
    let mut expected = Vec::from(text_block(0, "I call"));
    expected
        .push(Start { index: 1, block: BlockStart::Call { id: "a".into(), name: "f".to_owned() } });
    expected.extend(text_block(2, "on"));
    // Arguments may still follow it.
    expected.push(Delta { index: 1, text: "{}".to_owned() });
    expected.push(End {
        index: 1,
        artefact: Some(Artefact::new("openai.extra_content", extra.to_string())),
    });
    expected.push(Stop(StopReason::Calls));
    assert_eq!(events, expected);
}

#[test]
fn no_arguments_before_the_arguments_are_held_back() {
    let made = calls(&[
        json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        json!([{"index": 0, "function": {"arguments": "{\"x\""}}]),
        json!([{"index": 0, "function": {"arguments": ":1}"}}]),
        json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}]),
    ]);
    assert_eq!(made, [call("a", "f", "{\"x\":1}"), call("b", "g", "{}")]);
}

#[test]
fn a_call_in_the_form_before_tool_calls_is_read() {
    let pieces = [
        json!({"name": "f", "arguments": ""}),
        json!({"arguments": "{\"x\":"}),
        json!({"arguments": "1}"}),
    ];
    let events = deltas(&pieces.map(|piece| json!({"function_call": piece})));
    let [Start { block: BlockStart::Call { name, .. }, .. }, ..] = &events[..] else {
        panic!("{events:?}")
    };
    let arguments: String = events
        .iter()
        .filter_map(|event| match event {
            Delta { text, .. } => Some(&**text),
            _ => None,
        })
        .collect();
    assert_eq!((&**name, &*arguments), ("f", "{\"x\":1}"));
    assert!(events.contains(&Stop(StopReason::Calls)));
}
