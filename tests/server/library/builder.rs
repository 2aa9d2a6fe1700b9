//! The builder: any order of its calls, and the values that it refuses.

use std::time::Duration;

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::ApiKey,
    options::{Connections, HttpOptions, ModelPrice, Prices},
    store::MemoryStore,
};

use super::support::{Running, input};

/// A call of the builder.
type Call = fn(Server) -> Server;

const CALLS: [Call; 4] = [
    |server| server.api_keys([ApiKey::from_secret("web", "s3cret")]),
    |server| server.http_options(HttpOptions { max_body_bytes: 1000, ..HttpOptions::default() }),
    |server| server.store(MemoryStore::new()),
    |server| server.agent("echo", Echo).connections(Connections::default()).drain(Duration::ZERO),
];

fn permutations(calls: &[Call]) -> Vec<Vec<Call>> {
    let Some((first, rest)) = calls.split_first() else { return vec![vec![]] };
    let insert = |order: Vec<Call>| {
        (0..=order.len())
            .map(move |at| [&order[..at], &[*first], &order[at..]].concat())
            .collect::<Vec<_>>()
    };
    permutations(rest).into_iter().flat_map(insert).collect()
}

#[tokio::test]
async fn each_order_of_calls_makes_the_same_server() {
    let orders = permutations(&CALLS);
    assert_eq!(orders.len(), 24);
    for order in orders {
        let server =
            Running::start(order.iter().fold(Server::new(), |server, call| call(server))).await;
        let post = |body: String| {
            let post =
                server.post("/send-message").header("content-type", "application/json").body(body);
            // A server with keys answers under every name.
            post.header("host", "agents.example.com").send()
        };
        assert_eq!(post(input("Hello").to_string()).await.unwrap().status(), 401);
        let with_key = |text: &str| {
            let post = server
                .post("/send-message")
                .bearer_auth("s3cret")
                .header("host", "agents.example.com");
            post.json(&input(text)).send()
        };
        assert_eq!(with_key("Hello").await.unwrap().status(), 200);
        assert_eq!(with_key(&"x".repeat(2000)).await.unwrap().status(), 413);
        let threads =
            server.client.get(server.url("/threads")).bearer_auth("s3cret").send().await.unwrap();
        assert!(threads.text().await.unwrap().contains("echo"));
    }
}

#[tokio::test]
async fn a_server_without_authentication_answers_loopback_and_allowed_names_only() {
    for (allowed, status) in
        [("", 403), ("example.com", 403), ("agents.example.com", 200), ("*", 200)]
    {
        let options =
            HttpOptions { allowed_hosts: vec![allowed.to_owned()], ..HttpOptions::default() };
        let server = Running::start(Server::new().http_options(options).agent("echo", Echo)).await;
        let post =
            server.post("/send-message").header("host", "agents.example.com").json(&input("Hello"));
        assert_eq!(post.send().await.unwrap().status(), status, "{allowed:?}");
    }
}

#[tokio::test]
async fn a_server_with_an_invalid_price_does_not_start() {
    for price in [-1.0, f64::NAN] {
        let prices = Prices::from_iter([("a-model".to_owned(), ModelPrice::new(1.0, price))]);
        let error = Server::new().agent("echo", Echo).prices(prices).into_router().unwrap_err();
        assert_eq!(error.to_string(), "prices.\"a-model\": prices are numbers of at least 0");
    }
}
