//! Changes that owners make to their threads, and the messages of a thread page by page.

use agui_server::{Server, agent::builtin::Echo};
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::{
    support::running::Running,
    threads::{ask, ask_and_leave, ask_detached, puppet, refusal, said},
};

async fn echo() -> Running {
    Running::start(Server::new().agent("echo", Echo)).await
}

impl Running {
    fn patch(&self, path: &str, body: &Value) -> RequestBuilder {
        self.client.patch(self.url(path)).json(body)
    }

    async fn patched(&self, thread: &str, body: Value) -> Value {
        let response = self.patch(&format!("/threads/{thread}"), &body).send().await.unwrap();
        let (status, body) = (response.status(), response.json().await.unwrap());
        assert_eq!(status, 200, "{body}");
        body
    }

    async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        let (status, body) = (response.status(), response.json().await.unwrap());
        assert_eq!(status, 200, "{path}: {body}");
        body
    }
}

#[tokio::test]
async fn the_first_message_of_a_user_is_the_title() {
    let server = echo().await;
    let text = "What's the weather like in Beijing today, and should I take an umbrella?";
    server.events(&ask("t", "r", "m", text)).await;
    server.events(&ask("t", "s", "n", "Another question")).await;
    let title = "What's the weather like in Beijing today, and should I take…";
    assert_eq!(server.thread("t").await["title"], title);
    assert_eq!(server.json("/threads").await["threads"][0]["title"], title);
    server.events(&ask("zh", "r", "m", "今天北京的天气怎么样?")).await;
    assert_eq!(server.thread("zh").await["title"], "今天北京的天气怎么样?");
    let image = json!([{ "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" } }]);
    let mut input = ask("image", "r", "m", "");
    input["messages"][0]["content"] = image;
    server.events(&input).await;
    assert_eq!(server.thread("image").await["title"], Value::Null);
}

#[tokio::test]
async fn a_thread_can_be_renamed_archived_and_described() {
    let server = echo().await;
    server.events(&ask("t", "r", "m", "Hello")).await;
    server.events(&ask("u", "r", "m", "Hello")).await;
    let changed = server
        .patched("t", json!({ "title": "  My \n trip ", "metadata": { "a": 1, "b": 2 } }))
        .await;
    assert_eq!(
        (&changed["title"], &changed["metadata"]),
        (&json!("My trip"), &json!({ "a": 1, "b": 2 }))
    );
    let changed = server
        .patched("t", json!({ "metadata": { "b": null, "c": [] }, "archived": true, "x": 1 }))
        .await;
    assert_eq!(
        changed["metadata"],
        json!({ "a": 1, "c": [] }),
        "members are merged, null removes one"
    );
    let view = server.thread("t").await;
    let seen = (&view["title"], &view["archived"], &view["metadata"]);
    assert_eq!(seen, (&json!("My trip"), &json!(true), &json!({ "a": 1, "c": [] })));
    let ids = async |query: &str| {
        let list = server.json(&format!("/threads{query}")).await;
        let ids = list["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| thread["threadId"].as_str().unwrap().to_owned());
        ids.collect::<Vec<_>>().concat()
    };
    assert_eq!(
        (ids("").await, ids("?archived=true").await, ids("?archived=all").await),
        ("u".into(), "t".into(), "ut".into())
    );
    assert_eq!((ids("?agent=echo").await, ids("?agent=other").await), ("u".into(), String::new()));
    assert_eq!(server.get("/threads?archived=maybe").await.status(), 400);

    server.events(&ask("t", "s", "n", "More")).await;
    let view = server.thread("t").await;
    assert_eq!(
        (&view["title"], &view["archived"]),
        (&json!("My trip"), &json!(true)),
        "a run changes neither"
    );
    server.patched("t", json!({ "title": null, "metadata": null, "archived": null })).await;
    server.events(&ask("t", "x", "o", "Next")).await;
    let view = server.thread("t").await;
    assert_eq!((&view["title"], &view["metadata"]), (&json!("Next"), &json!({})));
}

#[tokio::test]
async fn wrong_changes_are_refused_and_change_nothing() {
    let server = echo().await;
    server.events(&ask("t", "r", "m", "Hello")).await;
    let before = server.thread("t").await;
    let large = json!({ "metadata": { "x": "y".repeat(17_000) } });
    for (body, status, code) in [
        (json!([]), 400, "invalid_input"),
        (json!({ "title": 1 }), 400, "invalid_input"),
        (json!({ "title": "x".repeat(201) }), 400, "invalid_input"),
        (json!({ "archived": "yes", "title": "new" }), 400, "invalid_input"),
        (json!({ "metadata": [] }), 400, "invalid_input"),
        (large, 413, "metadata_too_large"),
        (json!({ "head": "nothing", "title": "new" }), 404, "unknown_message"),
        (json!({ "metadata": { "x": "y".repeat(70_000) } }), 413, "body_too_large"),
    ] {
        let refused = refusal(server.patch("/threads/t", &body).send().await.unwrap()).await;
        assert_eq!(refused, (status, code.to_owned()));
    }
    let unknown = server.patch("/threads/nowhere", &json!({ "title": "x" })).send().await.unwrap();
    assert_eq!(refusal(unknown).await, (404, "unknown_thread".to_owned()));
    let text = server.client.patch(server.url("/threads/t")).body("{}").send().await.unwrap();
    assert_eq!(refusal(text).await, (415, "unsupported_media_type".to_owned()));
    assert_eq!(server.thread("t").await, before);
}

#[tokio::test]
async fn a_thread_can_be_renamed_during_a_run_but_its_branch_cannot_be_changed() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    for (run, message) in [("r", "one"), ("s", "two")] {
        strings.send("end".to_owned()).unwrap();
        let mut input = ask("t", run, message, message);
        input["parentRunId"] = "none".into();
        if run == "s" {
            input["messages"] = json!([{ "id": "m", "role": "user", "content": "changed" }]);
        } else {
            input["messages"][0]["id"] = "m".into();
        }
        server.events(&input).await;
    }
    let other = server.json("/threads/t/messages").await["alternatives"]["m"].clone();
    assert_eq!(
        other,
        json!(["m"]),
        "an edited message has the id of the one that it replaces, which is listed once"
    );
    ask_and_leave(&server, &ask_detached("t", "x")).await;
    let refused = server.patch("/threads/t", &json!({ "head": "m" })).send().await.unwrap();
    assert_eq!(refusal(refused).await, (409, "run_is_running".to_owned()));
    assert_eq!(server.patched("t", json!({ "title": "Renamed" })).await["title"], "Renamed");
    strings.send("end".to_owned()).unwrap();
    assert_eq!(server.until_status("t", "finished").await["title"], "Renamed");
}

#[tokio::test]
async fn a_message_of_another_branch_makes_that_branch_the_current_one() {
    let server = echo().await;
    server.events(&ask("t", "r1", "m1", "first")).await;
    let mut edited = ask("t", "r2", "m2", "edited");
    let first = server.thread("t").await["messages"].clone();
    server.events(&ask("t", "r1b", "m3", "second")).await;
    // The client goes back to the first answer and asks another question.
    edited["messages"] = json!([first[0], first[1], edited["messages"][0]]);
    server.events(&edited).await;
    let page = server.json("/threads/t/messages").await;
    assert_eq!(
        said(&page),
        ["user: first", "assistant: first", "user: edited", "assistant: edited"]
    );
    assert_eq!(
        (&page["before"], &page["alternatives"]),
        (&Value::Null, &json!({ "m2": ["m3", "m2"] }))
    );
    assert_eq!(server.thread("t").await["alternatives"], page["alternatives"]);
    server.patched("t", json!({ "head": "m3" })).await;
    let back = server.thread("t").await;
    assert_eq!(
        said(&back),
        ["user: first", "assistant: first", "user: second", "assistant: second"]
    );
    assert_eq!(back["alternatives"], json!({ "m3": ["m3", "m2"] }));
    server.patched("t", json!({ "head": "m1" })).await;
    assert_eq!(said(&server.thread("t").await).len(), 4, "the current branch has m1 already");
    server.events(&ask("t", "r3", "m4", "third")).await;
    assert_eq!(
        said(&server.thread("t").await)[2..4],
        ["user: second", "assistant: second"],
        "runs continue the branch"
    );
}

#[tokio::test]
async fn messages_are_read_page_by_page_and_by_run() {
    let server = echo().await;
    for n in 0..30 {
        server.events(&ask("t", &format!("r{n}"), &format!("m{n}"), &n.to_string())).await;
    }
    let view = server.thread("t").await;
    assert_eq!(view["messages"].as_array().unwrap().len(), 50, "the newest ones");
    assert_eq!(view["messages"][49]["content"], "29");
    let older = server
        .json(&format!("/threads/t/messages?before={}", view["before"].as_str().unwrap()))
        .await;
    assert_eq!(said(&older).len(), 10);
    assert_eq!((said(&older)[0].as_str(), &older["before"]), ("user: 0", &Value::Null));
    let mut all = Vec::new();
    let mut before = String::new();
    loop {
        let page = server.json(&format!("/threads/t/messages?limit=7{before}")).await;
        all.splice(0..0, said(&page));
        match page["before"].as_str() {
            Some(cursor) => before = format!("&before={cursor}"),
            None => break,
        }
    }
    let expected: Vec<_> =
        (0..30).flat_map(|n| [format!("user: {n}"), format!("assistant: {n}")]).collect();
    assert_eq!(all, expected);
    assert_eq!(said(&server.json("/threads/t/messages?run=r7").await), ["assistant: 7"]);
    for (wrong, status) in [("limit=0", 400), ("before=x", 400), ("run=nothing", 404)] {
        assert_eq!(
            server.get(&format!("/threads/t/messages?{wrong}")).await.status(),
            status,
            "{wrong}"
        );
    }
    assert_eq!(server.get("/threads/nowhere/messages").await.status(), 404);
}
