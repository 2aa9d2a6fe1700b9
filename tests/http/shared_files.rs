//! Files that an agent hands over: activities with URLs, which the thread keeps.

use agui_server::{
    Server,
    agent::{AgentError, Emitter, agent_fn},
    protocol::RunAgentInput,
};
use serde_json::{Value, json};

use crate::support::{
    conversation::{ask, ask_detached, refusal},
    running::Running,
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x06";
const FILE: &str = "agui-server.file";

/// Hands an image over, after it has said the URL of the image that it was given.
async fn painter(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    let given = serde_json::to_value(&input.messages)?;
    let file =
        given.as_array().into_iter().flatten().find(|message| message["activityType"] == FILE);
    if let Some(url) = file.and_then(|file| file["content"]["url"].as_str()) {
        out.text(url).await?;
    }
    out.file("a cat.png", "image/jpeg", PNG).await
}

fn file_in(values: &Value) -> Value {
    let values = values.as_array().unwrap();
    values.iter().find(|value| value["activityType"] == FILE).unwrap()["content"].clone()
}

async fn opens(server: &Running, content: &Value) -> bool {
    let read = server.client.get(content["url"].as_str().unwrap()).send().await.unwrap();
    read.status() == 200 && read.bytes().await.unwrap() == PNG
}

#[tokio::test]
async fn a_file_of_an_agent_has_a_url_wherever_its_thread_is_shown() {
    let server = Running::start(Server::new().agent("painter", agent_fn(painter))).await;
    let content = file_in(&server.events(&ask("t", "r", "m", "paint")).await.into());
    let id = content["id"].as_str().unwrap();
    let url = content["url"].as_str().unwrap();
    let expected = json!({
        "id": id, "name": "a cat.png", "mimeType": "image/png", "bytes": PNG.len(), "width": 2, "height": 3, "url": url,
    });
    assert_eq!(content, expected);
    assert!(opens(&server, &content).await);
    let again = server.events(&ask("t", "r2", "m2", "darker")).await;
    let given = again.iter().find(|event| event["type"] == "TEXT_MESSAGE_CONTENT").unwrap();
    assert!(
        given["delta"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"),
        "the agent gets the bytes"
    );

    let thread = server.thread("t").await;
    let shown = file_in(&thread["messages"]);
    assert_eq!((&shown["id"], shown.get("provider")), (&content["id"], None));
    assert!(opens(&server, &shown).await);
    let list: Value = server.get("/threads/t/messages").await.json().await.unwrap();
    assert!(opens(&server, &file_in(&list["messages"])).await);
    let connected = server.post("/threads/t/connect").json(&json!({})).send().await.unwrap();
    assert!(connected.text().await.unwrap().contains(&format!("{id}?expires=")));
    let export: Value = server.get("/threads/t/export?files=inline").await.json().await.unwrap();
    assert!(export.to_string().contains("\"url\":\"data:image/png;base64,iVBOR"), "{export}");

    let delete = server.client.delete(server.url(&format!("/files/{id}")));
    assert_eq!(refusal(delete.send().await.unwrap()).await, (409, "file_in_use".to_owned()));
}

#[tokio::test]
async fn a_file_in_the_log_of_a_detached_run_has_a_new_url() {
    let server = Running::start(Server::new().agent("painter", agent_fn(painter))).await;
    let content = file_in(&server.events(&ask_detached("t", "r")).await.into());
    let log = server.get("/threads/t/runs/r/events").await.text().await.unwrap();
    assert!(log.contains(&format!("{}?expires=", content["id"].as_str().unwrap())), "{log}");
    assert!(!log.contains("\"provider\""));
}

#[tokio::test]
async fn a_client_that_sends_an_activity_back_names_the_same_file() {
    let server = Running::start(Server::new().agent("painter", agent_fn(painter))).await;
    let content = file_in(&server.events(&ask("t", "r", "m", "paint")).await.into());
    let sent = |url: &str| {
        let mut content = content.clone();
        content["url"] = url.into();
        json!({ "id": "a", "role": "activity", "activityType": FILE, "content": content })
    };
    let url = content["url"].as_str().unwrap();
    for (thread, message) in
        [("signed", sent(url)), ("data", sent("data:image/png;base64,iVBORw0KGgoAAAA="))]
    {
        let user = json!({ "id": "m", "role": "user", "content": "darker" });
        let input = json!({ "threadId": thread, "runId": "r", "messages": [user, message, { "id": "n", "role": "user", "content": "!" }] });
        let given = server.events(&input).await;
        let given = given.iter().find(|event| event["type"] == "TEXT_MESSAGE_CONTENT").unwrap();
        assert!(
            given["delta"].as_str().unwrap().starts_with("data:image/png;base64,iVBOR"),
            "{thread}"
        );
        let stored = file_in(&server.thread(thread).await["messages"]);
        assert_eq!(stored["id"] == content["id"], thread == "signed");
        assert!(stored["url"].as_str().unwrap().contains("?expires="), "{stored}");
    }
    assert_eq!(server.client.delete(server.url("/threads/t")).send().await.unwrap().status(), 204);
    assert!(opens(&server, &content).await, "another thread uses it");
}

#[tokio::test]
async fn a_file_that_is_too_large_is_an_error_of_the_agent() {
    let big = async |_: RunAgentInput, out: Emitter| out.file("a.bin", "", vec![7; 21 << 20]).await;
    let server = Running::start(Server::new().agent("big", agent_fn(big))).await;
    let events = server.events(&ask("t", "r", "m", "go")).await;
    assert_eq!(events.last().unwrap()["code"], "file_too_large");
}
