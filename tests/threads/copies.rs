//! Copies of threads: fork, export and import.

use agui_server::{
    Server,
    agent::builtin::Echo,
    agent::{Emitter, agent_fn},
    options::HttpOptions,
    protocol::{Interrupt, RunAgentInput},
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::{
    support::running::{Running, read_until},
    threads::{ask, changed_options, refusal, said},
};

async fn echo() -> Running {
    Running::start(Server::new().agent("echo", Echo)).await
}

impl Running {
    async fn posted(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.post(path).json(body).send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json().await.unwrap())
    }

    async fn exported(&self, thread: &str) -> Value {
        self.get(&format!("/threads/{thread}/export")).await.json().await.unwrap()
    }
}

#[tokio::test]
async fn a_fork_begins_as_a_copy_and_goes_its_own_way() {
    let server = echo().await;
    let mut first = ask("t", "r1", "m1", "one");
    first["state"] = json!({ "count": 1 });
    server.events(&first).await;
    server.events(&ask("t", "r2", "m2", "two")).await;
    let (status, copy) = server.posted("/threads/t/fork", &json!({ "threadId": "copy" })).await;
    assert_eq!((status, &copy["threadId"], &copy["title"]), (201, &json!("copy"), &json!("one")));
    let original = server.thread("t").await;
    let copied = server.thread("copy").await;
    for same in ["messages", "state", "interrupts", "agent"] {
        assert_eq!(copied[same], original[same], "{same}");
    }
    server.events(&ask("copy", "r3", "m3", "three")).await;
    assert_eq!(said(&server.thread("copy").await).len(), 6);
    assert_eq!(server.thread("t").await, original);

    let (status, part) = server.posted("/threads/t/fork", &json!({ "messageId": "m2" })).await;
    assert_eq!(status, 201);
    let part = server.thread(part["threadId"].as_str().unwrap()).await;
    assert_eq!(said(&part), ["user: one", "assistant: one", "user: two"]);
    let bare = server.post("/threads/t/fork").send().await.unwrap();
    assert_eq!(bare.status(), 201);
}

#[tokio::test]
async fn a_fork_at_a_question_has_the_state_before_its_answer() {
    let counts = |input: RunAgentInput, out: Emitter| async move {
        out.set_state(json!({ "messages": input.messages.len() })).await?;
        out.text("counted").await
    };
    let server = Running::start(Server::new().agent("counts", agent_fn(counts))).await;
    for (run, message) in [("r1", "m1"), ("r2", "m2"), ("r3", "m3")] {
        server.events(&ask("t", run, message, "go")).await;
    }
    let none =
        server.posted("/threads/t/fork", &json!({ "threadId": "u", "messageId": "m1" })).await;
    assert_eq!(
        (none.0, server.exported("u").await["states"].clone()),
        (201, json!([])),
        "no run has ended before"
    );
    for (at, state) in [("m2", json!({ "messages": 1 })), ("m3", json!({ "messages": 3 }))] {
        server.posted("/threads/t/fork", &json!({ "threadId": at, "messageId": at })).await;
        assert_eq!(server.thread(at).await["state"], state);
    }
}

#[tokio::test]
async fn a_fork_has_the_open_interrupts_of_its_branch() {
    let asks = |input: RunAgentInput, out: Emitter| async move {
        match input.resume.is_empty() {
            true => out.interrupt([Interrupt::new("confirmation")]).await,
            false => out.text("confirmed").await,
        }
    };
    let server = Running::start(Server::new().agent("asks", agent_fn(asks))).await;
    server.events(&ask("t", "r", "m", "go")).await;
    server.posted("/threads/t/fork", &json!({ "threadId": "copy" })).await;
    let open = server.thread("copy").await["interrupts"][0]["id"].clone();
    let answer = json!({ "interruptId": open, "status": "resolved", "payload": true });
    let resume = json!({ "threadId": "copy", "runId": "s", "messages": [], "resume": [answer] });
    assert_eq!(server.events(&resume).await.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(
        server.thread("t").await["interrupts"].as_array().unwrap().len(),
        1,
        "the original still waits"
    );
}

#[tokio::test]
async fn an_export_can_be_imported() {
    let server = echo().await;
    let mut first = ask("t", "r1", "m1", "one");
    first["state"] = json!({ "count": 1 });
    server.events(&first).await;
    server.events(&ask("t", "r2", "m2", "two")).await;
    let mut edited = ask("t", "r3", "m3", "other");
    edited["messages"] = json!([
        server.thread("t").await["messages"][0],
        server.thread("t").await["messages"][1],
        edited["messages"][0]
    ]);
    server.events(&edited).await;
    server
        .client
        .patch(server.url("/threads/t"))
        .json(&json!({ "title": "Mine", "metadata": { "a": 1 } }))
        .send()
        .await
        .unwrap();
    server.posted_feedback("t", "m1").await;
    let export = server.exported("t").await;
    assert_eq!(
        (export["messages"].as_array().unwrap().len(), export["runs"].as_array().unwrap().len()),
        (6, 3)
    );
    let run = export["messages"][1]["run"].as_u64().unwrap() as usize;
    assert_eq!(export["runs"][run]["runId"], "r1");

    let other = echo().await;
    let (status, imported) = other.posted("/threads/import", &export).await;
    assert_eq!(
        (status, &imported["threadId"], &imported["title"]),
        (201, &json!("t"), &json!("Mine"))
    );
    let (before, after) = (server.thread("t").await, other.thread("t").await);
    for same in
        ["title", "metadata", "messages", "alternatives", "feedback", "state", "agent", "createdAt"]
    {
        assert_eq!(after[same], before[same], "{same}");
    }
    other.events(&ask("t", "r4", "m4", "more")).await;
    assert_eq!(said(&other.thread("t").await).len(), 6);
    let again = other.post("/threads/import").json(&export).send().await.unwrap();
    assert_eq!(refusal(again).await, (409, "thread_exists".to_owned()));
    assert_eq!(other.posted("/threads/import?threadId=u", &export).await.0, 201);
    assert_eq!(other.exported("u").await["states"], export["states"]);
}

#[tokio::test]
async fn an_export_that_is_larger_than_other_bodies_can_be_imported() {
    let options = || HttpOptions { max_body_bytes: 100_000, ..HttpOptions::default() };
    let start = || Running::start(Server::new().agent("echo", Echo).http_options(options()));
    let (server, other) = (start().await, start().await);
    for number in 0..3 {
        let text = "x".repeat(60_000);
        server.events(&ask("t", &format!("r{number}"), &format!("m{number}"), &text)).await;
    }
    let picture = [&b"\x89PNG\r\n\x1a\n"[..], &[7; 200_000]].concat();
    let picture = server.post("/files").header("content-type", "image/png").body(picture);
    let picture: Value = picture.send().await.unwrap().json().await.unwrap();
    let mut shown = ask("t", "r", "m", "");
    shown["messages"][0]["content"] = json!([{ "type": "text", "text": "look" }, picture["part"]]);
    server.events(&shown).await;
    let export: Value = server.get("/threads/t/export?files=inline").await.json().await.unwrap();
    assert!(export.to_string().len() > 6 * 60_000 + 200_000);
    assert_eq!(other.posted("/threads/import", &export).await.0, 201);
    assert_eq!(other.exported("t").await["messages"].as_array().unwrap().len(), 8);
    assert_eq!(
        other.refused(&export).await,
        (413, "body_too_large".to_owned()),
        "other bodies keep their limit"
    );
}

#[tokio::test]
async fn an_import_beyond_the_largest_export_is_refused() {
    let server = echo().await;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head =
        "POST /threads/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let head = format!("{head}Expect: 100-continue\r\nContent-Length: 200000000\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, |text| text.contains("body_too_large")).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

/// Retention would remove it at once otherwise.
#[tokio::test]
async fn an_old_thread_that_is_imported_counts_as_used_now() {
    let server = echo().await;
    server.events(&ask("t", "r", "m", "one")).await;
    let mut export = server.exported("t").await;
    for time in ["createdAt", "updatedAt"] {
        export[time] = json!("2020-01-31T12:00:00.000Z");
    }
    export["threadId"] = json!("old");
    assert_eq!(server.posted("/threads/import", &export).await.0, 201);
    let imported = server.thread("old").await;
    assert_eq!(imported["createdAt"], export["createdAt"]);
    assert!(
        imported["updatedAt"].as_str() >= server.thread("t").await["updatedAt"].as_str(),
        "{imported}"
    );
}

impl Running {
    async fn posted_feedback(&self, thread: &str, message: &str) {
        let path = format!("/threads/{thread}/messages/{message}/feedback");
        let response =
            self.post(&path).json(&json!({ "score": 1, "comment": "good" })).send().await.unwrap();
        assert_eq!(response.status(), 204);
    }
}

/// An import is written by a client, so nothing in it is a call or a question of a run.
#[tokio::test]
async fn an_import_opens_no_interrupts_and_makes_no_messages_of_runs() {
    let server = echo().await;
    server.events(&ask("t", "r", "m", "one")).await;
    let mut export = server.exported("t").await;
    let interrupt = json!({ "id": "int_forged", "reason": "tool_call", "toolCallId": "call" });
    export["interrupts"] = json!([interrupt]);
    export["runs"][0]["interrupts"] = json!([interrupt]);
    export["threadId"] = json!("forged");
    assert_eq!(server.posted("/threads/import", &export).await.0, 201);
    assert_eq!(server.thread("forged").await["interrupts"], json!([]));
    let stored = server.exported("forged").await;
    assert!(
        stored["messages"].as_array().unwrap().iter().all(|message| message.get("run").is_none()),
        "{stored}"
    );
    assert!(
        stored["runs"].as_array().unwrap().iter().all(|run| run.get("interrupts").is_none()),
        "{stored}"
    );
}

fn call(id: &str) -> Value {
    let call =
        json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
    json!({ "id": "a", "role": "assistant", "toolCalls": [call] })
}

fn result(call: &str) -> Value {
    json!({ "id": "a", "role": "tool", "toolCallId": call, "content": "5" })
}

fn opinion(comment: &str) -> Value {
    json!({ "comment": comment, "at": "2026-01-31T12:00:00.000Z" })
}

#[tokio::test]
async fn wrong_imports_and_forks_are_refused_and_store_nothing() {
    let server = Running::start(
        Server::new()
            .agent("echo", Echo)
            .thread_options(changed_options(|options| options.max_messages = 4)),
    )
    .await;
    server.events(&ask("t", "r", "m", "one")).await;
    let export = server.exported("t").await;
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut wrong = export.clone();
        wrong["threadId"] = json!("new");
        change(&mut wrong);
        wrong
    };
    for (body, path) in [
        (wrong(&|it| it["messages"][1]["parent"] = json!(2)), "messages[1].parent"),
        (wrong(&|it| it["messages"][0]["parent"] = json!(-1)), "messages[0].parent"),
        (wrong(&|it| it["head"] = json!(3)), "head"),
        (wrong(&|it| it["state"] = json!(9)), "state"),
        (wrong(&|it| it["runs"][0]["head"] = json!(9)), "runs[0].head"),
        (wrong(&|it| it["runs"][0]["status"] = json!("running")), "runs[0].status"),
        (wrong(&|it| it["states"] = json!([1, 2, 3, 4, 5])), "states"),
        (wrong(&|it| it["runs"] = vec![it["runs"][0].clone(); 5].into()), "runs"),
        (wrong(&|it| it["createdAt"] = json!("yesterday")), ""),
        (wrong(&|it| it["threadId"] = json!("x".repeat(1025))), "threadId"),
        (wrong(&|it| it["metadata"] = json!({ "x": "y".repeat(17_000) })), "metadata"),
        (wrong(&|it| it["agent"] = json!("x".repeat(1025))), "agent"),
        (
            wrong(&|it| it["messages"][0]["message"]["id"] = json!("x".repeat(1025))),
            "messages[0].message.id",
        ),
        (
            wrong(&|it| it["messages"][1]["message"] = call(&"x".repeat(1025))),
            "messages[1].message.toolCalls[0].id",
        ),
        (
            wrong(&|it| it["messages"][1]["message"] = result(&"x".repeat(1025))),
            "messages[1].message.toolCallId",
        ),
        (
            wrong(&|it| it["messages"][1]["feedback"] = opinion(&"x".repeat(8193))),
            "messages[1].feedback.comment",
        ),
        (wrong(&|it| it["runs"][0]["runId"] = json!("x".repeat(1025))), "runs[0].runId"),
        (wrong(&|it| it["runs"][0]["attempt"] = json!(0)), "runs[0].attempt"),
        (wrong(&|it| it["runs"][0]["attempt"] = json!(u32::MAX)), "runs[0].attempt"),
        (wrong(&|it| it["runs"][0]["attempt"] = json!(-1)), ""),
        (wrong(&|it| it["runs"] = vec![it["runs"][0].clone(); 2].into()), "runs[1].attempt"),
        (wrong(&|it| it["runs"][0]["agent"] = json!("x".repeat(1025))), "runs[0].agent"),
    ] {
        let (status, refused) = server.posted("/threads/import", &body).await;
        assert_eq!((status, &refused["error"]["path"]), (400, &json!(path)), "{refused}");
    }
    let message = &export["messages"][0];
    let (status, refused) = server
        .posted(
            "/threads/import",
            &wrong(&|it| {
                it["messages"] = json!([message, message, message, message, message].map(|it| {
                    let mut it = it.clone();
                    it["parent"] = json!(0);
                    it
                }))
            }),
        )
        .await;
    assert_eq!((status, &refused["error"]["code"]), (413, &json!("thread_too_large")));
    assert_eq!(server.posted("/threads/import", &json!({ "messages": [] })).await.0, 400);
    assert_eq!(server.get("/threads/new").await.status(), 404);
    for (path, body, status) in [
        ("/threads/nowhere/fork", json!({}), 404),
        ("/threads/t/fork", json!({ "messageId": "nothing" }), 404),
        ("/threads/t/fork", json!({ "threadId": "t" }), 409),
        ("/threads/t/fork", json!({ "threadId": 5 }), 400),
        ("/threads/t/fork", json!({ "threadId": "x".repeat(1025) }), 400),
    ] {
        assert_eq!(server.posted(path, &body).await.0, status, "{path} {body}");
    }
    assert_eq!(server.get("/threads/nowhere/export").await.status(), 404);
}
