//! The search over HTTP. The contract of the store tests which threads are found.

use agui_server::{Server, agent::builtin::Echo};
use serde_json::Value;

use crate::{support::running::Running, threads::ask};

async fn found(server: &Running, query: &str) -> (u16, Vec<String>) {
    let request = server.client.get(server.url("/threads")).query(&[("q", query), ("limit", "3")]);
    let response = request.send().await.unwrap();
    let (status, body) = (response.status().as_u16(), response.json::<Value>().await.unwrap());
    let threads = body["threads"].as_array().cloned().unwrap_or_default();
    (status, threads.iter().map(|thread| thread["threadId"].as_str().unwrap().to_owned()).collect())
}

#[tokio::test]
async fn threads_are_found_by_their_messages() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    server.events(&ask("en", "r", "m", "What's the weather like?")).await;
    server.events(&ask("zh", "r", "m", "今天北京的天气怎么样?")).await;
    assert_eq!(found(&server, "weather").await, (200, vec!["en".to_owned()]));
    assert_eq!(found(&server, "北京").await, (200, vec!["zh".to_owned()]));
    assert_eq!(found(&server, " ").await.1.len(), 2, "an empty search lists all threads");
    assert_eq!(found(&server, "nothing").await, (200, Vec::new()));
}

#[tokio::test]
async fn searches_are_bounded() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    server.events(&ask("t", "r", "m", "Hello")).await;
    assert_eq!(found(&server, &"天".repeat(201)).await.0, 400);
    assert_eq!(found(&server, &"hello ".repeat(33)).await, (200, vec!["t".to_owned()]));
}
