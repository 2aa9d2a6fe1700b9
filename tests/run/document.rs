//! Runs without a stream: the response is one JSON document, or names the place where it will be.

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        emit::{TextMessage, state},
        event_stream,
    },
    protocol::RunAgentInput,
};
use serde_json::{Value, json};

use crate::{
    run::{ask, puppet, refusal},
    support::running::{Running, eventually, silent},
};

/// Says how many messages it got, and sets the state. Fails if it is told to.
fn counting(input: RunAgentInput, _: RunContext) -> EventStream {
    event_stream(async_stream::try_stream! {
        for event in TextMessage::whole(format!("{} messages", input.messages.len())) {
            yield event;
        }
        yield state::snapshot(json!({ "count": input.messages.len() }));
        if input.messages.last().is_some_and(|message| message.id().as_str() == "fail") {
            Err(agui_server::agent::AgentError::new("refused", "no"))?;
        }
    })
}

async fn document_of(server: &Running, input: &Value) -> Value {
    let response = server
        .post("/send-message")
        .header("accept", "application/json")
        .json(input)
        .send()
        .await
        .unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"application/json".parse().unwrap())
    );
    response.json().await.unwrap()
}

fn added(document: &Value) -> Vec<&str> {
    document["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_client_that_accepts_json_alone_gets_what_the_run_has_made() {
    let server = Running::start(Server::new().agent("counting", counting)).await;
    let document = document_of(&server, &ask("t", "r1", "m1", "go")).await;
    assert_eq!(added(&document), ["1 messages"]);
    let (status, outcome) = (json!("finished"), json!({ "type": "success" }));
    assert_eq!((&document["status"], &document["outcome"]), (&status, &outcome));
    assert_eq!((&document["threadId"], &document["runId"]), (&json!("t"), &json!("r1")));
    assert_eq!(document["state"], json!({ "count": 1 }));
    let failed = document_of(&server, &ask("t2", "r", "fail", "go")).await;
    assert_eq!(
        (&failed["status"], &failed["error"]),
        (&json!("failed"), &json!({ "code": "refused", "message": "no" }))
    );
    assert_eq!((added(&failed), failed.get("outcome")), (vec!["1 messages"], None));
}

#[tokio::test]
async fn messages_that_were_there_before_are_not_in_the_document() {
    let server = Running::start(Server::new().agent("counting", counting)).await;
    document_of(&server, &ask("t", "r1", "m1", "go")).await;
    // The client sends its newest message alone: a stream would begin with a snapshot of all of them.
    let document = document_of(&server, &ask("t", "r2", "m2", "go on")).await;
    assert_eq!(added(&document), ["3 messages"]);
}

#[tokio::test]
async fn a_client_that_leaves_cancels_the_run_that_it_waits_for() {
    let (agent, stopped) = silent();
    let server = Running::start(Server::new().agent("silent", agent)).await;
    let request = server
        .post("/send-message")
        .header("accept", "application/json")
        .json(&ask("t", "r", "m", "go"));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    drop(response);
    eventually("the run is dropped", || stopped.get() == 1).await;
    server.until_status("t", "cancelled").await;
}

#[tokio::test]
async fn a_client_that_does_not_wait_finds_the_document_at_its_url() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let request = server.post("/send-message").header("prefer", "respond-async");
    let response = request.json(&ask("a thread", "r", "m", "go")).send().await.unwrap();
    assert_eq!(response.status(), 202);
    assert_eq!(response.headers()["preference-applied"], "respond-async");
    let url = response.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(url, "/threads/a%20thread/runs/r");
    assert_eq!(response.json::<Value>().await.unwrap()["status"], "running");
    let running = server.get(&url).await;
    assert_eq!(running.status(), 202);
    assert_eq!(running.json::<Value>().await.unwrap()["status"], "running");
    let waiting = tokio::spawn(server.client.get(server.url(&format!("{url}?wait=50"))).send());
    strings.send("Hello".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    for response in [waiting.await.unwrap().unwrap(), server.get(&url).await] {
        assert_eq!(response.status(), 200);
        let document: Value = response.json().await.unwrap();
        assert_eq!((added(&document), &document["status"]), (vec!["Hello"], &json!("finished")));
        assert_eq!(document.get("state"), None, "nothing in the log says it");
    }
    let wrong = server.get(&format!("{url}?wait=a")).await;
    assert_eq!(refusal(wrong).await, (400, "invalid_parameter".to_owned()));
    assert_eq!(
        refusal(server.get("/threads/a%20thread/runs/other").await).await,
        (404, "unknown_run".to_owned())
    );
}

#[tokio::test]
async fn a_client_that_does_not_wait_is_detached_and_its_agent_gets_its_input_unchanged() {
    let agent = |input: RunAgentInput, _: RunContext| {
        let props = input.forwarded_props.unwrap_or_default();
        agui_server::agent::events(TextMessage::whole(props.to_string()))
    };
    let server = Running::start(Server::new().agent("props", agent)).await;
    let mut asked = ask("t", "r", "m", "go");
    asked["forwardedProps"] = json!({ "a": 1 });
    let request = server.post("/send-message").header("prefer", "respond-async").json(&asked);
    assert_eq!(request.send().await.unwrap().status(), 202);
    let document: Value = server.get("/threads/t/runs/r?wait=50").await.json().await.unwrap();
    assert_eq!(added(&document), [r#"{"a":1}"#]);
}
