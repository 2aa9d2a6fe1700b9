//! Invalid requests are refused before a run begins, with the JSON path of the invalid value.

use serde_json::{Value, json};

use super::{CHAT, TestServer, on, user};

#[tokio::test]
async fn a_refusal_names_the_path_of_the_invalid_value() {
    let server = TestServer::demo();
    let block = |block: Value| user(json!([{ "type": "text", "text": "Look" }, block]));
    for (body, path) in [
        (json!([]), ""),
        (json!({}), "messages"),
        (json!({ "messages": [] }), "messages"),
        (json!({ "messages": ["hi"] }), "messages[0]"),
        (json!({ "messages": [{ "role": "tool", "content": "x" }] }), "messages[0].role"),
        (user(7), "messages[0].content"),
        (user(json!({ "text": "x" })), "messages[0].content.decisions"),
        (
            user(json!({ "decisions": [{ "type": "approve" }] })),
            "messages[0].content.decisions[0].actionId",
        ),
        (user(json!({ "decisions": ["approve"] })), "messages[0].content.decisions[0]"),
        (
            user(json!({ "decisions": [{ "actionId": "a", "type": "maybe" }] })),
            "messages[0].content.decisions[0]",
        ),
        (
            user(json!({ "decisions": [{ "actionId": "a", "type": "edit" }] })),
            "messages[0].content.decisions[0].args",
        ),
        (block(json!({ "type": "picture" })), "messages[0].content[1].type"),
        (block(json!({ "type": "text" })), "messages[0].content[1]"),
        (block(json!({ "type": "image" })), "messages[0].content[1]"),
        (block(json!({ "type": "image", "url": "" })), "messages[0].content[1].url"),
        (
            block(json!({ "type": "image", "url": "https://a", "data": "AA==" })),
            "messages[0].content[1]",
        ),
        (block(json!({ "type": "image", "data": "AA==" })), "messages[0].content[1].mime_type"),
        (
            block(json!({ "type": "image", "data": "A!", "mime_type": "image/png" })),
            "messages[0].content[1].data",
        ),
        (
            block(json!({ "type": "audio", "data": "", "mime_type": "audio/wav" })),
            "messages[0].content[1].data",
        ),
        (json!({ "messages": [{ "role": "user", "content": "x" }], "thread_id": 7 }), "thread_id"),
        (
            json!({ "messages": [{ "role": "user", "content": "x" }], "enable_deep_thinking": "yes" }),
            "enable_deep_thinking",
        ),
    ] {
        let response = server.send(CHAT, &body).await;
        assert_eq!(response.status(), 400, "{body}");
        let refusal: Value = response.json().await.unwrap();
        assert_eq!(refusal["error"]["path"], path, "{body}: {refusal}");
        assert_eq!(refusal["error"]["code"], "invalid_input");
    }
    let no_json =
        server.client.post(format!("{}{CHAT}", server.process.url)).body("x").send().await.unwrap();
    assert_eq!(no_json.status(), 415);
    assert_eq!(
        server.client.get(format!("{}{CHAT}", server.process.url)).send().await.unwrap().status(),
        405
    );
}

#[tokio::test]
async fn a_body_of_too_many_or_too_deep_values_is_refused() {
    let server = TestServer::demo();
    let deep = format!(r#"{{"messages":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
    let many = format!(r#"{{"messages":[{}0]}}"#, "0,".repeat(600_000));
    for (body, status, code) in [(deep, 400, "too_deep"), (many, 413, "too_many_values")] {
        let url = format!("{}{CHAT}", server.process.url);
        let request = server.client.post(url).header("content-type", "application/json").body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{code}");
        assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], code);
    }
}

#[tokio::test]
async fn principals_have_separate_threads_with_the_same_id() {
    use agui_server::{Server, agent::builtin::Echo, auth::ApiKey};
    let keys = ["ada", "bob"].map(|name| ApiKey::from_secret(name, &format!("key-of-{name}")));
    let router = Server::new().agent("echo", Echo).api_keys(keys).into_router().unwrap().0;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}{CHAT}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    // Ids are hexadecimal, so they can contain "ada".
    let says = |name: &str| format!("I am {name}");
    let ask = async |name: &str| {
        let request =
            client.post(&url).bearer_auth(format!("key-of-{name}")).json(&on("same", says(name)));
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        response.text().await.unwrap();
        status
    };
    assert_eq!((ask("ada").await, ask("bob").await, ask("eve").await), (200, 200, 401));
    for name in ["ada", "bob"] {
        let thread = url.replace(CHAT, "/threads/same");
        let thread = client.get(thread).bearer_auth(format!("key-of-{name}")).send().await.unwrap();
        let messages = thread.json::<serde_json::Value>().await.unwrap()["messages"].to_string();
        for writer in ["ada", "bob"] {
            assert_eq!(messages.contains(&says(writer)), name == writer, "{name}: {messages}");
        }
    }
    server.abort();
}

#[tokio::test]
async fn the_endpoints_can_be_disabled() {
    use super::process::Process;
    let server =
        TestServer::new(Process::start(&[], &[("AGUI_NAMED_EVENTS__ENABLED", "false")]), None);
    assert_eq!(server.send(CHAT, &user("hi")).await.status(), 404);
}
