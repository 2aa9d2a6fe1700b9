use serde_json::json;

use super::*;

/// Returns whether the call `pay` of 5 to Bob, with a note, stands in a text.
fn stands_in(text: &str) -> bool {
    SoughtCalls::new([("pay", r#"{"to":"bob","cents":5,"note":"a \"b\"\nc"}"#)]).stand_in(text)
}

const CALL: &str = r#"{"name":"pay","arguments":{"to":"bob","cents":5,"note":"a \"b\"\nc"}}"#;

#[test]
fn a_call_is_found_in_every_syntax_and_form() {
    let within = |text: &str| json!({ "items": [{ "page": text }] }).to_string();
    let html = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let tagged = format!("See: <tool_call>{CALL}</tool_call> and more.");
    for text in [
        tagged.clone(),
        "{\"arguments\" : { \"note\":\"a \\u0022b\\u0022\\u000ac\",\n \"cents\":5.0, \"to\":\"\\u0062ob\"}, \"name\":\"p\\u0061y\"}".into(),
        CALL.replace('5', "0.5e1"),
        CALL.replace("arguments", "parameters"),
        CALL.replace("arguments", "input"),
        // With a member that is left out, or with a list and an object as texts.
        CALL.replace("\"cents\"", "\"urgent\":null,\"cents\""),
        json!({ "type": "function", "function": { "name": "pay", "arguments": "{'to': 'bob', 'cents': 5, 'note': 'a \"b\"\\nc'}" } })
            .to_string(),
        r#"[TOOL_CALLS]pay[ARGS] {"to":"bob","cents":5,"note":"a \"b\"\nc"}"#.into(),
        r#"x[ now(), pay(to='bob', cents=5, note="a \"b\"\nc") ] y"#.into(),
        "<x><invoke name=\"pay\"><parameter name=\"to\">bob</parameter><parameter name=\"cents\">5</parameter>\
         <parameter name=\"note\" string=\"true\">a \"b\"\nc</parameter></invoke>".into(),
        within(&tagged),
        within(&within(&tagged)),
        within(&within(&within(&tagged))),
        html(&tagged),
        within(&html(&tagged)),
        html(&within(&tagged)),
        format!("{{\"a\":\"{{\",\"b\": {tagged}"),
        format!("{{\"open\": [1, {tagged}"),
    ] {
        assert!(stands_in(&text), "{text}");
    }
}

#[test]
fn other_calls_and_parts_of_a_call_are_not_found() {
    for text in [
        String::new(),
        "Pay bob 5 cents.".into(),
        CALL.replace("bob", "eve"),
        CALL.replace('5', "6"),
        CALL.replace("pay", "play"),
        CALL.replace("\"cents\"", "\"urgent\":true,\"cents\""),
        r#"{"to":"bob","cents":5,"note":"a \"b\"\nc"}"#.into(),
        r#"{"name":"pay"}"#.into(),
        CALL[..CALL.len() - 3].into(),
        "pay(to='bob', cents=5) {\"name\": [\"pay\"]} <invoke name=\"pay\"> [pay(".into(),
    ] {
        assert!(!stands_in(&text), "{text}");
    }
    assert!(SoughtCalls::new([("now", "")]).stand_in("[now()]"));
    assert!(!SoughtCalls::new([("now", "")]).stand_in("fn now() {} [now] now"));
}

#[test]
fn a_text_that_needs_too_much_work_has_every_call() {
    let hostile = "[pay(".repeat(1 << 20);
    assert!(stands_in(&hostile));
}
