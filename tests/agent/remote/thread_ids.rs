//! The ids that an endpoint gets in place of the client's: its memory stays with one owner and
//! branch.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::builtin::{Remote, ThreadIds},
    auth::ApiKey,
    store::MemoryStore,
};
use serde_json::{Value, json};

use super::{
    endpoint::{FakeEndpoint, Response, finished, started, text},
    running::{Running, events},
    support::conversation::ask,
};

/// Answers run after run with messages of the ids `a1`, `a2` and so on; the answers in `failing` fail.
async fn answering(failing: &[usize]) -> FakeEndpoint {
    let answer = |number: usize| match failing.contains(&number) {
        true => Response::status(500, "no"),
        false => {
            let answer =
                [&[started()][..], &text(&format!("a{number}"), "Hi"), &[finished()]].concat();
            Response::events(&answer)
        }
    };
    FakeEndpoint::new((1..20).map(answer)).await
}

fn remote(endpoint: &FakeEndpoint, ids: ThreadIds) -> Server {
    let mut options = endpoint.options();
    options.thread_ids = ids;
    Server::new().agent("remote", Remote::new(options).unwrap())
}

fn with_two_owners(server: Server) -> Server {
    server.api_keys([ApiKey::from_secret("ann", "a-key"), ApiKey::from_secret("bob", "b-key")])
}

async fn run_by(key: &str, server: &Running, input: &Value) -> Vec<Value> {
    let response = server.post("/send-message").bearer_auth(key).json(input).send().await.unwrap();
    events(&response.text().await.unwrap())
}

/// The ids of thread and run in each request.
fn sent(endpoint: &FakeEndpoint) -> Vec<(String, String)> {
    let id = |value: &Value| value.as_str().unwrap().to_owned();
    endpoint
        .requests()
        .iter()
        .map(|request| (id(&request.body["threadId"]), id(&request.body["runId"])))
        .collect()
}

#[tokio::test]
async fn the_same_ids_of_two_owners_are_two_threads_and_runs_at_the_endpoint() {
    let endpoint = answering(&[]).await;
    let server = Running::start(with_two_owners(remote(&endpoint, ThreadIds::Branch))).await;
    for (key, run) in [("a-key", "r"), ("b-key", "r"), ("a-key", "r2")] {
        let events = run_by(key, &server, &ask("t", run, &format!("m-{run}"), "Hello")).await;
        for frame in [events.first().unwrap(), events.last().unwrap()] {
            assert_eq!(
                (&frame["threadId"], &frame["runId"]),
                (&json!("t"), &json!(run)),
                "clients keep their ids"
            );
        }
    }
    let [(ann, of_ann), (bob, of_bob), (again, next)] = &sent(&endpoint)[..] else { panic!() };
    assert!(ann != bob && of_ann != of_bob, "the endpoint would give bob what it remembers of ann");
    assert!(ann == again && of_ann != next, "it would not remember");
    for id in [ann, of_ann] {
        assert!(uuid::Uuid::parse_str(id).is_ok(), "some servers take no other ids: {id}");
    }
}

/// A conversation with these messages of the user, answered by the runs with these numbers.
fn shown(run: &str, turns: &[(&str, &str)]) -> Value {
    let messages = turns.iter().flat_map(|(user, answer)| {
        let user = json!({ "id": user, "role": "user", "content": user });
        let answer = json!({ "id": answer, "role": "assistant", "content": "Hi" });
        [Some(user), (answer["id"] != "").then_some(answer)]
    });
    json!({ "threadId": "t", "runId": run, "messages": messages.flatten().collect::<Vec<_>>() })
}

#[tokio::test]
async fn an_edit_has_another_thread_at_the_endpoint_and_going_back_the_old_one() {
    // A server that has just started reads the branch from the store.
    for (ids, is_restarted) in
        [(ThreadIds::Branch, false), (ThreadIds::Branch, true), (ThreadIds::Thread, false)]
    {
        let endpoint = answering(&[8]).await;
        let store = Arc::new(MemoryStore::new());
        let start = || Running::start(remote(&endpoint, ids).store(store.clone()));
        let mut server = start().await;
        for (run, (turns, parent)) in [
            (&[("u1", "")][..], None),
            (&[("u1", "a1"), ("u2", "")], None),
            // An edit, and a message after it.
            (&[("u1", "a1"), ("v2", "")], None),
            (&[("u1", "a1"), ("v2", "a3"), ("v3", "")], None),
            // Back to the first branch.
            (&[("u1", "a1"), ("u2", "a2"), ("u3", "")], None),
            // Another answer in place of the last one.
            (&[("u1", "a1"), ("u2", "a2"), ("u3", "")], None),
            (&[("u1", "a1"), ("u2", "a2"), ("u3", "a6"), ("u4", "")], None),
            // A message that gets no answer, and an edit of it.
            (&[("u1", "a1"), ("u2", "a2"), ("u3", "a6"), ("u4", "a7"), ("u5", "")], None),
            (&[("u1", "a1"), ("u2", "a2"), ("u3", "a6"), ("u4", "a7"), ("v5", "")], None),
            // The memory of the first run.
            (&[("w2", "")], Some("1")),
        ]
        .into_iter()
        .enumerate()
        {
            if is_restarted {
                server = start().await;
            }
            let mut input = shown(&(run + 1).to_string(), turns);
            input["parentRunId"] = json!(parent);
            server.events(&input).await;
        }
        let threads: Vec<_> = sent(&endpoint).into_iter().map(|(thread, _)| thread).collect();
        let mut seen: Vec<&String> = Vec::new();
        let numbers =
            threads.iter().map(|thread| match seen.iter().position(|other| *other == thread) {
                Some(number) => number,
                None => {
                    seen.push(thread);
                    seen.len() - 1
                }
            });
        let expected =
            if ids == ThreadIds::Thread { [0; 10] } else { [0, 0, 1, 1, 0, 2, 2, 2, 3, 4] };
        assert_eq!(numbers.collect::<Vec<_>>(), expected, "{ids:?}, restarted: {is_restarted}");
    }
}

#[tokio::test]
async fn an_endpoint_remembers_neither_a_deleted_thread_nor_runs_that_are_not_stored() {
    let endpoint = answering(&[]).await;
    let server = Running::start(remote(&endpoint, ThreadIds::Thread)).await;
    server.events(&ask("t", "1", "m1", "Hello")).await;
    let mut of_app = ask("t", "2", "m2", "Hello");
    of_app["forwardedProps"] =
        json!({ "__proxiedMCPRequest": { "serverHash": "s", "method": "tools/list" } });
    server.events(&of_app).await;
    let deleted = server.client.delete(server.url("/threads/t")).send().await.unwrap();
    assert_eq!(deleted.status(), 204);
    server.events(&ask("t", "1", "m1", "Hello")).await;
    let [first, of_app, again] = &sent(&endpoint)[..] else { panic!() };
    assert!(first.0 != of_app.0 && first.0 != again.0 && first.1 != again.1);
}

#[tokio::test]
async fn a_parent_run_has_its_id_at_the_endpoint() {
    let endpoint = answering(&[]).await;
    let server = Running::start(remote(&endpoint, ThreadIds::Branch)).await;
    server.events(&ask("t", "1", "m1", "Hello")).await;
    let mut next = ask("t", "2", "m2", "Hello");
    next["parentRunId"] = json!("1");
    server.events(&next).await;
    assert_eq!(endpoint.requests()[1].body["parentRunId"], sent(&endpoint)[0].1);
}

#[tokio::test]
async fn the_ids_of_clients_are_sent_if_the_configuration_says_so() {
    let endpoint = answering(&[]).await;
    let server = Running::start(with_two_owners(remote(&endpoint, ThreadIds::Client))).await;
    for key in ["a-key", "b-key"] {
        run_by(key, &server, &ask("t", "r", "m", "Hello")).await;
    }
    assert_eq!(
        sent(&endpoint),
        [("t".to_owned(), "r".to_owned()), ("t".to_owned(), "r".to_owned())]
    );
}
