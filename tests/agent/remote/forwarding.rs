//! Endpoints that behave: the requests that they get, and the events that come back.

use serde_json::{Value, json};

use super::{
    endpoint::{FakeEndpoint, Response, agent_events, finished, run, server_with, started, text},
    running::input,
};

#[tokio::test]
async fn a_run_is_forwarded_and_its_events_come_back_with_the_servers_ids() {
    let said = [
        json!({ "type": "STEP_STARTED", "stepName": "look" }),
        json!({ "type": "REASONING_START", "messageId": "s" }),
        json!({ "type": "REASONING_MESSAGE_START", "messageId": "th", "role": "reasoning" }),
        json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "th", "delta": "Hm" }),
        json!({ "type": "REASONING_MESSAGE_END", "messageId": "th" }),
        json!({ "type": "REASONING_END", "messageId": "s" }),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look_up" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "tr", "toolCallId": "c", "content": [{ "type": "text", "text": "5" }] }),
        json!({ "type": "STATE_SNAPSHOT", "snapshot": { "n": null } }),
        json!({ "type": "STATE_DELTA", "delta": [{ "op": "replace", "path": "/n", "value": 5 }] }),
        json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": { "x": null } }),
        json!({ "type": "CUSTOM", "name": "acme.x", "value": null, "timestamp": 7 }),
        json!({ "type": "RAW", "event": { "any": "thing" }, "source": "acme" }),
        json!({ "type": "STEP_FINISHED", "stepName": "look" }),
    ];
    let mut stream = vec![started()];
    stream.extend(said.clone());
    stream.extend(text("m1", "It is 5."));
    let usage = json!([{ "provider": "acme", "model": "x", "inputTokens": 3 }]);
    stream.push(
        json!({ "type": "RUN_FINISHED", "threadId": "theirs", "runId": "r9", "result": { "n": 5 }, "usage": usage }),
    );
    let endpoint = FakeEndpoint::new([Response::events(&stream)]).await;
    let input = input("how many?");
    let mut options = endpoint.options();
    options.raw_events = true;
    let events = run(&server_with(options).await, &input).await;

    let mut expected = said.to_vec();
    expected.extend(text("m1", "It is 5."));
    assert_eq!(agent_events(&events), expected);
    let thread = &input["threadId"];
    let end = json!({
        "type": "RUN_FINISHED", "threadId": thread, "runId": "r", "result": { "n": 5 },
        "outcome": { "type": "success" }, "usage": usage,
    });
    assert_eq!(events.last(), Some(&end));

    let [request] = &endpoint.requests()[..] else { panic!("expected one request") };
    assert_eq!(request.headers["accept"], "text/event-stream");
    assert_eq!(request.headers["content-type"], "application/json");
    // Its ids are in thread_ids.rs.
    let expected = json!({
        "threadId": request.body["threadId"], "runId": request.body["runId"], "protocolVersion": "1.1", "state": {}, "tools": [], "context": [],
        "forwardedProps": {}, "messages": [{ "role": "user", "id": "m", "content": "how many?" }],
    });
    assert_eq!(request.body, expected);
}

#[tokio::test]
async fn the_endpoint_gets_the_stored_thread_when_the_client_sends_only_new_messages() {
    let first = [
        &[started()][..],
        &text("a1", "Hi"),
        &[json!({ "type": "STATE_SNAPSHOT", "snapshot": { "k": 1 } })],
        &[finished()],
    ];
    let second = [&[started()][..], &text("a2", "Bye"), &[finished()]];
    let endpoint =
        FakeEndpoint::new([Response::events(&first.concat()), Response::events(&second.concat())])
            .await;
    let server = endpoint.server().await;
    let mut asked = input("Hello");
    run(&server, &asked).await;
    asked["runId"] = "r2".into();
    asked["messages"] = json!([{ "id": "m2", "role": "user", "content": "Goodbye" }]);
    asked["forwardedProps"] = json!({ "any": null });
    run(&server, &asked).await;
    let body = endpoint.requests()[1].body.clone();
    let contents: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, ["Hello", "Hi", "Goodbye"]);
    assert_eq!(
        (&body["state"], &body["forwardedProps"]),
        (&json!({ "k": 1 }), &json!({ "any": null }))
    );
}

#[tokio::test]
async fn encrypted_values_return_to_the_endpoint_with_their_types_and_activities_do_not() {
    let sealed = |subtype: &str, entity: &str, value: &str, kind: Option<&str>| {
        let mut event = json!({
            "type": "REASONING_ENCRYPTED_VALUE", "subtype": subtype, "entityId": entity, "encryptedValue": value,
        });
        if let Some(kind) = kind {
            event["encryptedValueType"] = kind.into();
        }
        event
    };
    let said = [
        json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": {} }),
        json!({ "type": "REASONING_MESSAGE_START", "messageId": "th", "role": "reasoning" }),
        json!({ "type": "REASONING_MESSAGE_END", "messageId": "th" }),
        sealed("message", "th", "old", Some("acme.old")),
        sealed("message", "th", "new", Some("acme.hidden")),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "m-call" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        sealed("tool-call", "c", "first", Some("acme.call")),
        sealed("tool-call", "c", "untyped", None),
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "tr", "toolCallId": "c", "content": "5" }),
        sealed("message", "tr", "result", Some("acme.result")),
    ];
    let stream = [&[started()][..], &said, &[finished()]].concat();
    let endpoint =
        FakeEndpoint::new([Response::events(&stream), Response::events(&[started(), finished()])])
            .await;
    let server = endpoint.server().await;
    let mut asked = input("Hello");
    let events = run(&server, &asked).await;
    assert_eq!(agent_events(&events), said);
    asked["runId"] = "r2".into();
    asked["messages"] = json!([{ "id": "m2", "role": "user", "content": "Again" }]);
    run(&server, &asked).await;
    let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "" }, "encryptedValue": "untyped" });
    let expected = json!([
        { "role": "user", "id": "m", "content": "Hello" },
        { "role": "reasoning", "id": "th", "content": "", "encryptedValue": "new", "encryptedValueType": "acme.hidden" },
        { "role": "assistant", "id": "m-call", "toolCalls": [call] },
        {
            "role": "tool", "id": "tr", "toolCallId": "c", "content": "5",
            "encryptedValue": "result", "encryptedValueType": "acme.result",
        },
        { "role": "user", "id": "m2", "content": "Again" },
    ]);
    assert_eq!(endpoint.requests()[1].body["messages"], expected);
}

#[tokio::test]
async fn an_interrupt_is_stored_and_its_answer_is_forwarded() {
    let interrupt = json!({ "id": "i1", "reason": "tool_call", "message": "Really?" });
    let asks = json!({
        "type": "RUN_FINISHED", "threadId": "x", "runId": "y",
        "outcome": { "type": "interrupt", "interrupts": [interrupt] },
    });
    let done = [&[started()][..], &text("a2", "Done"), &[finished()]].concat();
    let endpoint =
        FakeEndpoint::new([Response::events(&[started(), asks]), Response::events(&done)]).await;
    let server = endpoint.server().await;
    let mut asked = input("Do it");
    let events = run(&server, &asked).await;
    assert_eq!(events.last().unwrap()["outcome"]["interrupts"], json!([interrupt]));

    let resume =
        json!([{ "interruptId": "i1", "status": "resolved", "payload": { "approved": true } }]);
    asked["runId"] = "r2".into();
    asked["resume"] = resume.clone();
    let events = run(&server, &asked).await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(endpoint.requests()[1].body["resume"], resume);
}

#[tokio::test]
async fn pending_tool_calls_and_cancelled_runs_keep_their_outcome() {
    let call = [
        started(),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "pick" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        finished(),
    ];
    let stopped = json!({ "type": "RUN_FINISHED", "threadId": "x", "runId": "y", "outcome": { "type": "cancelled" } });
    let endpoint =
        FakeEndpoint::new([Response::events(&call), Response::events(&[started(), stopped])]).await;
    let server = endpoint.server().await;
    let last = |events: Vec<Value>| events.last().unwrap()["outcome"].clone();
    assert_eq!(
        last(run(&server, &input("a")).await),
        json!({ "type": "success", "pendingToolCallIds": ["c"] })
    );
    assert_eq!(last(run(&server, &input("b")).await), json!({ "type": "cancelled" }));
}

#[tokio::test]
async fn a_remote_error_keeps_its_code_message_and_usage() {
    let usage = json!([{ "model": "x", "outputTokens": 1 }]);
    let failed =
        json!({ "type": "RUN_ERROR", "message": "No tea", "code": "no_tea", "usage": usage });
    let begun = json!({ "type": "TEXT_MESSAGE_START", "messageId": "said" });
    let bare = json!({ "type": "RUN_ERROR", "message": "Oh", "code": null });
    let endpoint = FakeEndpoint::new([
        Response::events(&[started(), begun, failed]),
        Response::events(&[bare]),
    ])
    .await;
    let server = endpoint.server().await;
    let events = run(&server, &input("tea")).await;
    assert_eq!(events[events.len() - 2]["type"], "TEXT_MESSAGE_END");
    let expected =
        json!({ "type": "RUN_ERROR", "message": "No tea", "code": "no_tea", "usage": usage });
    assert_eq!(events.last(), Some(&expected));
    let events = run(&server, &input("tea")).await;
    assert_eq!(
        events.last(),
        Some(&json!({ "type": "RUN_ERROR", "message": "Oh", "code": "remote_error" }))
    );
}

#[tokio::test]
async fn of_an_activity_delta_that_does_not_apply_only_the_metadata_is_forwarded() {
    let snapshot = json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": { "x": 1 } });
    let delta = json!({
        "type": "ACTIVITY_DELTA", "messageId": "a", "activityType": "PLAN",
        "patch": [{ "op": "remove", "path": "/missing" }],
    });
    let mut with_metadata = delta.clone();
    with_metadata["metadata"] = json!({ "k": 1 });
    let stream = [started(), snapshot.clone(), delta, with_metadata.clone(), finished()];
    let endpoint = FakeEndpoint::new([Response::events(&stream)]).await;
    let events = run(&endpoint.server().await, &input("go")).await;
    with_metadata["patch"] = json!([]);
    assert_eq!(agent_events(&events), [snapshot, with_metadata]);
}

#[tokio::test]
async fn a_request_of_an_mcp_app_goes_to_the_endpoint_and_is_not_stored() {
    let end = json!({ "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "result": { "contents": [] } });
    let endpoint = FakeEndpoint::new([Response::events(&[started(), end])]).await;
    let server = endpoint.server().await;
    let request =
        json!({ "serverHash": "s", "method": "resources/read", "params": { "uri": "ui://a" } });
    let mut input = input("hi");
    input["forwardedProps"] = json!({ "__proxiedMCPRequest": request, "onDisconnect": "continue" });
    let events = run(&server, &input).await;
    assert_eq!(events.last().unwrap()["result"], json!({ "contents": [] }));
    assert_eq!(endpoint.requests()[0].body["forwardedProps"]["__proxiedMCPRequest"], request);
    let thread =
        server.client.get(server.url(&format!("/threads/{}", input["threadId"].as_str().unwrap())));
    assert_eq!(thread.send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_surface_that_an_endpoint_describes_is_painted_and_a_click_reaches_the_endpoint() {
    let arguments = json!({ "surfaceId": "s", "components": [{ "id": "root", "component": "Text", "text": "Hi" }] });
    let shown = [
        started(),
        json!({ "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "render_a2ui" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": arguments.to_string() }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": "c" }),
        finished(),
    ];
    let endpoint =
        FakeEndpoint::new([Response::events(&shown), Response::events(&[started(), finished()])])
            .await;
    let server = endpoint.server().await;
    let mut input = input("show it");
    input["forwardedProps"] = json!({ "a2uiCatalogAvailable": true });
    let events = run(&server, &input).await;
    let painted = events.iter().rfind(|event| event["messageId"] == "a2ui-surface-c").unwrap();
    assert_eq!(
        painted["content"]["a2ui_operations"][1]["updateComponents"]["components"],
        arguments["components"]
    );
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    assert_eq!(
        (&result["toolCallId"], &result["content"]),
        (&json!("c"), &json!(r#"{"status":"rendered"}"#))
    );
    let body = &endpoint.requests()[0].body;
    assert_eq!(body["tools"][0]["name"], "render_a2ui");
    assert!(
        body["context"][0]["description"]
            .as_str()
            .unwrap()
            .starts_with("A2UI render tool usage guide")
    );

    let action =
        json!({ "name": "book", "surfaceId": "s", "sourceComponentId": "b", "context": {} });
    input["forwardedProps"]["a2uiAction"] = json!({ "userAction": action });
    input["runId"] = json!("clicked");
    run(&server, &input).await;
    let body = &endpoint.requests()[1].body;
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        last["content"],
        "User performed action \"book\" on surface \"s\" (component: b). Context: {}"
    );
    assert_eq!(
        body["forwardedProps"]["a2uiAction"]["userAction"], action,
        "for an endpoint that reads clicks itself"
    );
}
