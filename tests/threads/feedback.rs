//! Feedback on messages.

use agui_server::{Server, agent::builtin::Echo};
use serde_json::{Value, json};

use crate::{
    support::running::Running,
    threads::{ask, refusal},
};

#[tokio::test]
async fn feedback_is_stored_returned_and_exported() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    server.events(&ask("t", "r", "m", "hi")).await;
    let answer = server.thread("t").await["messages"][1]["id"].as_str().unwrap().to_owned();
    let give = async |body: Value| {
        let path = format!("/threads/t/messages/{answer}/feedback");
        server.post(&path).json(&body).send().await.unwrap().status().as_u16()
    };
    assert_eq!(give(json!({ "score": -1, "comment": "wrong" })).await, 204);
    let view = server.thread("t").await;
    let given = &view["feedback"][&answer];
    assert_eq!((&given["score"], &given["comment"]), (&json!(-1.0), &json!("wrong")));
    let export: Value = server.get("/threads/t/export").await.json().await.unwrap();
    assert_eq!(&export["messages"][1]["feedback"], given);
    assert_eq!(give(json!({ "score": null })).await, 204);
    assert_eq!(server.thread("t").await.get("feedback"), None, "removed");
}

#[tokio::test]
async fn wrong_feedback_is_refused() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    server.events(&ask("t", "r", "m", "hi")).await;
    let give = async |thread: &str, message: &str, body: Value| {
        let path = format!("/threads/{thread}/messages/{message}/feedback");
        refusal(server.post(&path).json(&body).send().await.unwrap()).await
    };
    assert_eq!(give("t", "m", json!({ "score": "good" })).await.0, 400);
    let long =
        server.post("/threads/t/messages/m/feedback").json(&json!({ "comment": "x".repeat(9000) }));
    let refused: Value = long.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["path"]),
        (&json!("invalid_input"), &json!("comment"))
    );
    assert_eq!(
        give("t", "nothing", json!({ "score": 1 })).await,
        (404, "unknown_message".to_owned())
    );
    assert_eq!(give("u", "m", json!({ "score": 1 })).await, (404, "unknown_thread".to_owned()));
}
