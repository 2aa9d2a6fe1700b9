//! Tools of the request and of the provider, and the choice of a tool.

use super::*;

#[test]
fn a_model_that_refuses_forced_calls_is_asked_for_one() {
    let choice = |model: &str, tool_choice: ToolChoice, parallel_tool_calls| {
        let options = ModelOptions { parallel_tool_calls, ..options(model) };
        let request = ModelRequest {
            steps: vec![user("hi")],
            tools: Arc::new([tool("f")]),
            tool_choice,
            ..ModelRequest::default()
        };
        let mut json = sent(&options, &request);
        (json["tool_choice"].take(), json["messages"].take())
    };
    let named = || ToolChoice::Tool("f".to_owned());
    assert_eq!(choice("claude-opus-5", named(), None).0, json!({"type": "tool", "name": "f"}));
    let (member, messages) = choice("claude-opus-5-5", named(), None);
    assert_eq!(member, Value::Null);
    assert_eq!(messages[1]["role"], "system");
    assert!(messages[1].to_string().contains("Call the tool `f` now"), "{messages}");
    assert_eq!(choice("m", ToolChoice::Auto, None).0, Value::Null);
    assert_eq!(choice("m", ToolChoice::None, Some(false)).0, json!({"type": "none"}));
    assert_eq!(
        choice("m", ToolChoice::Auto, Some(false)).0,
        json!({"type": "auto", "disable_parallel_tool_use": true})
    );
    assert_eq!(
        choice("m", ToolChoice::Required, Some(false)).0,
        json!({"type": "any", "disable_parallel_tool_use": true})
    );
    assert_eq!(choice("m", ToolChoice::Tool("gone".to_owned()), None).0, Value::Null);
}

#[test]
fn calls_without_tools_are_sent_with_declared_tools_and_calls_forbidden() {
    let steps =
        vec![user("hi"), assistant(vec![call("a", "{}"), call("b", "{}")]), result("a", "one")];
    let json = sent(&options("m"), &ModelRequest { steps, ..ModelRequest::default() });
    assert_eq!(
        json["tools"],
        json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}])
    );
    assert_eq!(json["tool_choice"], json!({"type": "none"}));
    let json = sent(&options("m"), &ModelRequest::default());
    assert!(
        json.get("tools").is_none()
            && json.get("tool_choice").is_none()
            && json.get("system").is_none()
    );
}

#[test]
fn tools_of_the_provider_are_added_and_their_blocks_are_sent_back() {
    let Value::Object(extra_body) =
        json!({"tools": [{"type": "web_search_20250305", "name": "web_search"}]})
    else {
        unreachable!()
    };
    let options = ModelOptions { extra_body, ..options("m") };
    let own = |block: &Value| reasoning(Some(&block.to_string()), true, Some("anthropic"));
    let server_call =
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let request = |steps: &[ModelStep]| ModelRequest {
        steps: steps.to_vec(),
        tools: Arc::new([tool("f")]),
        current: vec!["state".to_owned()],
        ..ModelRequest::default()
    };
    let whole = [
        user("hi"),
        assistant(vec![own(&server_call), own(&found), Block::Text("a".to_owned())]),
        user("and"),
    ];
    let json = sent(&options, &request(&whole));
    assert_eq!(json["tools"].as_array().unwrap().len(), 2);
    assert_eq!(
        json["messages"][1]["content"],
        json!([server_call, found, {"type": "text", "text": "a"}])
    );
    assert!(body(&options, &request(&whole), true).has_server_tools);
    // The API runs the call when it gets the results of the others, without other content.
    let open =
        [user("hi"), assistant(vec![own(&server_call), call("a", "{}")]), result("a", "one")];
    let json = sent(&options, &request(&open));
    assert_eq!(json["messages"][1]["content"][0], server_call);
    assert_eq!(json["messages"][2]["content"].as_array().unwrap().len(), 1);
    let left = [&open[..], &[user("never mind")]].concat();
    assert_eq!(
        sent(&options, &request(&left))["messages"][1]["content"].as_array().unwrap().len(),
        1
    );
}
