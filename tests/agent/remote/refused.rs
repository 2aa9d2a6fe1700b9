//! Endpoints that refuse parts of a request which later versions of AG-UI have added.

use serde_json::{Value, json};

use super::{
    endpoint::{FakeEndpoint, Response, finished, run, started, text},
    running::input,
};

fn answer(id: &str) -> Response {
    let reasoning =
        json!({ "type": "REASONING_MESSAGE_CHUNK", "messageId": format!("h-{id}"), "delta": "Hm" });
    Response::events(&[&[started(), reasoning], &text(id, "Hi")[..], &[finished()]].concat())
}

fn refusal(text: &str) -> Response {
    Response::status(422, text)
}

fn roles(body: &Value) -> Vec<&str> {
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn what_an_endpoint_refuses_is_left_out_and_not_sent_again() {
    let endpoint = FakeEndpoint::new([
        refusal(r#"{"detail":[{"type":"extra_forbidden","loc":["body","protocolVersion"]}]}"#),
        answer("a1"),
        refusal("Unsupported message role: reasoning"),
        answer("a2"),
        answer("a3"),
    ])
    .await;
    let server = endpoint.server().await;
    let mut asked = input("Hello");
    for run_id in ["r1", "r2", "r3"] {
        asked["runId"] = run_id.into();
        asked["messages"] =
            json!([{ "id": format!("m-{run_id}"), "role": "user", "content": "Hello" }]);
        assert_eq!(run(&server, &asked).await.last().unwrap()["outcome"]["type"], "success");
    }
    let bodies: Vec<_> = endpoint.requests().into_iter().map(|request| request.body).collect();
    let versions: Vec<_> =
        bodies.iter().map(|body| body.get("protocolVersion").is_some()).collect();
    assert_eq!(versions, [true, false, false, false, false]);
    assert_eq!(roles(&bodies[2]), ["user", "reasoning", "assistant", "user"]);
    assert_eq!(roles(&bodies[3]), ["user", "assistant", "user"]);
    assert_eq!(roles(&bodies[4]), ["user", "assistant", "user", "assistant", "user"]);
}

#[tokio::test]
async fn a_request_that_stays_refused_fails_after_one_retry_for_each_part() {
    let endpoint = FakeEndpoint::new([refusal("no"), refusal("no"), answer("a1")]).await;
    let server = endpoint.server().await;
    let events = run(&server, &input("Hello")).await;
    assert_eq!(events.last().unwrap()["code"], "remote_rejected");
    assert_eq!(endpoint.requests().len(), 2, "without reasoning, there is one part to leave out");
    // It did not help, so the next request is whole.
    run(&server, &input("Hello")).await;
    assert!(endpoint.requests()[2].body.get("protocolVersion").is_some());

    for status in [401, 403, 404, 413, 429, 500] {
        let endpoint = FakeEndpoint::new([Response::status(status, "reasoning")]).await;
        run(&endpoint.server().await, &input("Hello")).await;
        assert_eq!(endpoint.requests().len(), 1, "{status} is no refusal of a part");
    }
}
