//! Lists of threads, and connecting to a thread.

use agui_server::{Server, agent::builtin::Echo};
use serde_json::{Value, json};

use crate::{
    support::running::{Running, events},
    threads::{ask, ask_and_leave, ask_detached, puppet, read_until, said, types},
};

#[tokio::test]
async fn a_thread_with_the_name_of_a_route_is_addressed_with_an_escaped_letter() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    for (thread, escaped) in [("events", "%65vents"), ("import", "%69mport")] {
        server.events(&ask(thread, "r", "m", "hi")).await;
        assert_eq!(server.thread(escaped).await["threadId"], thread);
        let deleted =
            server.client.delete(server.url(&format!("/threads/{escaped}"))).send().await.unwrap();
        assert_eq!(deleted.status(), 204, "{thread}");
    }
}

#[tokio::test]
async fn threads_are_listed_page_by_page_the_newest_first() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    for n in 0..5 {
        server.events(&ask(&format!("t/{n}.ü"), "r", "m", "hi")).await;
    }
    let mut found = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let mut request = server.client.get(server.url("/threads")).query(&[("limit", "2")]);
        if let Some(cursor) = &cursor {
            request = request.query(&[("cursor", cursor)]);
        }
        let page: Value = request.send().await.unwrap().json().await.unwrap();
        let threads = page["threads"].as_array().unwrap();
        assert!(threads.len() <= 2);
        found.extend(threads.iter().map(|thread| thread["threadId"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    let mut sorted = found.clone();
    sorted.sort();
    assert_eq!(sorted, ["t/0.ü", "t/1.ü", "t/2.ü", "t/3.ü", "t/4.ü"]);
    let whole: Value = server.get("/threads?limit=5").await.json().await.unwrap();
    assert_eq!(
        (whole["threads"].as_array().unwrap().len(), whole.get("next")),
        (5, None),
        "a full last page has no next"
    );
    for wrong in ["limit=0", "limit=201", "limit=x", "cursor=x", "limit=1&limit=2"] {
        assert_eq!(server.get(&format!("/threads?{wrong}")).await.status(), 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_client_that_connects_gets_the_thread_and_its_running_run() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    strings.send("one".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    server.events(&ask("t", "r1", "m1", "hi")).await;
    let connect = async |body: Value| {
        server.post("/threads/t/connect").json(&body).send().await.unwrap().text().await.unwrap()
    };
    let idle = events(&connect(json!({ "threadId": "t", "runId": "mine", "messages": [] })).await);
    assert_eq!(
        types(&idle),
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
    );
    assert_eq!((&idle[0]["runId"], &idle[3]["runId"]), (&json!("mine"), &json!("mine")));
    assert_eq!(idle[1]["messages"], server.thread("t").await["messages"]);

    ask_and_leave(&server, &ask_detached("t", "r2")).await;
    strings.send("two".to_owned()).unwrap();
    let empty = server.post("/threads/t/connect").send().await.unwrap();
    strings.send("end".to_owned()).unwrap();
    let joined = events(&empty.text().await.unwrap());
    let expected = [
        "RUN_STARTED",
        "MESSAGES_SNAPSHOT",
        "STATE_SNAPSHOT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ];
    assert_eq!(types(&joined), expected);
    assert_eq!(joined[0]["runId"], "r2");
    assert_eq!(
        joined[1]["messages"].as_array().unwrap().len(),
        3,
        "with the question that is being answered"
    );
}

#[tokio::test]
async fn a_client_can_connect_to_a_thread_that_does_not_exist_yet() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let response =
        server.post("/threads/new/connect").json(&json!({ "runId": "mine" })).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let told = events(&response.text().await.unwrap());
    assert_eq!(
        types(&told),
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
    );
    assert_eq!((&told[0]["threadId"], &told[0]["runId"]), (&json!("new"), &json!("mine")));
    assert_eq!((&told[1]["messages"], &told[2]["snapshot"]), (&json!([]), &json!({})));
    assert_eq!(server.get("/threads/new").await.status(), 404, "connecting makes no thread");
}

#[tokio::test]
async fn a_page_that_connects_during_a_run_sees_the_users_message() {
    let (agent, _strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut stream = server.raw_run(&ask("t", "r", "m", "Hello?")).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    assert_eq!(said(&server.thread("t").await), ["user: Hello?"]);
    let body = server.post("/threads/t/connect").send().await.unwrap().text().await.unwrap();
    assert_eq!(said(&events(&body)[1]), ["user: Hello?"], "{body}");
}

#[tokio::test]
async fn a_client_that_reconnects_at_once_finds_the_text_from_before_it_left() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("a", agent)).await;
    for number in 0..10 {
        let thread = format!("back-{number}");
        let mut stream = server.raw_run(&ask(&thread, "r", "m", "Hello?")).await;
        strings.send("Hi".to_owned()).unwrap();
        read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_CONTENT")).await;
        drop(stream);
        let body = server
            .post(&format!("/threads/{thread}/connect"))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        let snapshot = &events(&body)[1];
        assert_eq!(said(snapshot), ["user: Hello?", "assistant: Hi"], "{body}");
    }
}
