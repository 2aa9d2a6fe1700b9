//! Endpoints whose events need mending: ids that repeat, calls that are announced again, LangGraph's questions.

use serde_json::{Value, json};

use super::{
    endpoint::{FakeEndpoint, Response, agent_events, finished, run, started, text},
    running::{Running, input},
};

async fn thread(server: &Running, input: &Value) -> Value {
    let id = input["threadId"].as_str().unwrap();
    server
        .client
        .get(server.url(&format!("/threads/{id}")))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap()
}

fn ids(messages: &Value) -> Vec<&str> {
    messages.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect()
}

/// A run of the endpoint with these events.
fn run_of(events: &[&[Value]]) -> Response {
    Response::events(&[&[started()], &events.concat()[..], &[finished()]].concat())
}

fn next(input: &Value, run: &str, text: &str) -> Value {
    let mut next = input.clone();
    next["runId"] = run.into();
    next["messages"] = json!([{ "id": format!("m-{run}"), "role": "user", "content": text }]);
    next
}

fn call(id: &str) -> [Value; 3] {
    [
        json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "pay", "parentMessageId": "a1" }),
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "{\"sum\":5}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": id }),
    ]
}

#[tokio::test]
async fn answers_with_the_same_id_are_messages_of_their_own() {
    let endpoint =
        FakeEndpoint::new(["One", "Two", "Three"].map(|said| run_of(&[&text("a", said)]))).await;
    let server = endpoint.server().await;
    let first = input("Hello");
    for (run_id, said) in [("r", "1"), ("r2", "2"), ("r3", "3")] {
        let asked = if run_id == "r" { first.clone() } else { next(&first, run_id, said) };
        assert_eq!(run(&server, &asked).await.last().unwrap()["outcome"]["type"], "success");
    }
    let stored = thread(&server, &first).await["messages"].clone();
    assert_eq!(ids(&stored), ["m", "a", "m-r2", "a_agui2", "m-r3", "a_agui3"]);
    assert_eq!((&stored[1]["content"], &stored[5]["content"]), (&json!("One"), &json!("Three")));
    let sent = endpoint.requests()[2].body["messages"].clone();
    assert_eq!(
        ids(&sent),
        ["m", "a", "m-r2", "a_agui2", "m-r3"],
        "the ids that it gets are unique"
    );
}

#[tokio::test]
async fn a_question_of_langgraph_is_an_interrupt_and_its_checked_reply_the_command() {
    let question = json!({ "message": "Pay 5?", "responseSchema": { "type": "object", "required": ["approved"] } });
    let asks = json!({
        "type": "CUSTOM", "name": "on_interrupt", "value": question.to_string(), "rawEvent": { "id": "lg1", "value": question },
    });
    let result = json!({ "type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c1", "content": "paid" });
    let endpoint = FakeEndpoint::new([
        run_of(&[&call("c1"), std::slice::from_ref(&asks)]),
        // The resumed graph announces the call again.
        run_of(&[&call("c1"), std::slice::from_ref(&result), &text("a2", "Done")]),
    ])
    .await;
    let server = endpoint.server().await;
    let mut asked = input("Pay");
    let events = run(&server, &asked).await;
    let [interrupt] = &events.last().unwrap()["outcome"]["interrupts"].as_array().unwrap()[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(interrupt["message"], "Pay 5?");
    let custom = events.iter().find(|event| event["type"] == "CUSTOM").unwrap();
    assert_eq!((&custom["value"], custom.get("rawEvent")), (&asks["value"], None));

    // The reply is checked; the client's own command neither replaces it nor goes with it.
    let command = json!({ "command": { "resume": "approved by the page" } });
    asked["messages"] = json!([]);
    asked["forwardedProps"] = command.clone();
    for (run_id, resume, expected) in [
        ("r2", json!([]), "interrupt"),
        (
            "r3",
            json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": {} }]),
            "invalid_resume_payload",
        ),
    ] {
        asked["runId"] = run_id.into();
        asked["resume"] = resume;
        let last = run(&server, &asked).await.pop().unwrap();
        assert_eq!(last["code"].as_str().or(last["outcome"]["type"].as_str()), Some(expected));
    }
    assert_eq!(endpoint.requests().len(), 1);
    asked["runId"] = "r4".into();
    asked["resume"] = json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": { "approved": true } }]);
    let events = run(&server, &asked).await;
    // A client that shows no messages gets a snapshot of them first.
    assert_eq!(agent_events(&events)[1..], [&[result][..], &text("a2", "Done")].concat());
    let request = endpoint.requests()[1].body.clone();
    assert_eq!(request["forwardedProps"], json!({ "command": { "resume": { "approved": true } } }));
    assert_eq!(request.get("resume"), None);

    let stored = thread(&server, &asked).await["messages"].clone();
    assert_eq!(ids(&stored), ["m", "a1", "t1", "a2"]);
    assert_eq!(
        (&stored[1]["toolCalls"][0]["id"], &stored[2]["toolCallId"]),
        (&json!("c1"), &json!("c1"))
    );
}

#[tokio::test]
async fn a_snapshot_with_fewer_messages_takes_none_from_the_thread() {
    let snapshot = json!({ "type": "MESSAGES_SNAPSHOT", "messages": [{ "id": "a2", "role": "assistant", "content": "Two" }] });
    let endpoint = FakeEndpoint::new([
        run_of(&[&text("a1", "One")]),
        run_of(&[&text("a2", "Two"), &[snapshot]]),
    ])
    .await;
    let server = endpoint.server().await;
    let first = input("Hello");
    run(&server, &first).await;
    let events = run(&server, &next(&first, "r2", "Again")).await;
    let expected = ["m", "a1", "m-r2", "a2"];
    assert_eq!(ids(&events[events.len() - 2]["messages"]), expected, "what the client gets");
    assert_eq!(ids(&thread(&server, &first).await["messages"]), expected);
}

#[tokio::test]
async fn an_endpoint_does_not_get_again_what_it_has_withdrawn_but_on_another_branch() {
    let snapshot = json!({ "type": "MESSAGES_SNAPSHOT", "messages": [
        { "id": "m-r2", "role": "user", "content": "Again" }, { "id": "a2", "role": "assistant", "content": "Two" },
    ] });
    let endpoint = FakeEndpoint::new([
        run_of(&[&text("a1", "One")]),
        run_of(&[&text("a2", "Two"), &[snapshot]]),
        run_of(&[&text("a3", "Three")]),
        run_of(&[&text("a4", "Four")]),
    ])
    .await;
    let server = endpoint.server().await;
    let first = input("Hello");
    run(&server, &first).await;
    run(&server, &next(&first, "r2", "Again")).await;
    run(&server, &next(&first, "r3", "More")).await;
    let stored = thread(&server, &first).await["messages"].clone();
    assert_eq!(ids(&stored), ["m", "a1", "m-r2", "a2", "m-r3", "a3"]);
    let sent = |number: usize| endpoint.requests()[number].body["messages"].clone();
    assert_eq!(ids(&sent(1)), ["m", "a1", "m-r2"]);
    assert_eq!(ids(&sent(2)), ["m-r2", "a2", "m-r3"]);
    // An edit is another conversation at the endpoint, which remembers nothing of it.
    let mut edit = next(&first, "r4", "Other");
    let shown = [&stored.as_array().unwrap()[..4], edit["messages"].as_array().unwrap()].concat();
    edit["messages"] = shown.into();
    run(&server, &edit).await;
    assert_eq!(ids(&sent(3)), ["m", "a1", "m-r2", "a2", "m-r4"]);
    assert_eq!(sent(3)[0].get("metadata"), None);
}

#[tokio::test]
async fn raw_events_are_not_passed_on() {
    let [start, mut content, end] = text("a", "Hi");
    content["rawEvent"] = json!({ "long": "x" });
    let raw = json!({ "type": "RAW", "event": { "long": "x" }, "source": "acme" });
    let endpoint = FakeEndpoint::new([run_of(&[&[start, raw, content, end]])]).await;
    let events = run(&endpoint.server().await, &input("Hello")).await;
    assert_eq!(agent_events(&events), text("a", "Hi"));
}
