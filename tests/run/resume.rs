//! Clients whose connection breaks in a detached run, and who continue the same stream.

use agui_server::{Server, agent::builtin::Echo};
use serde_json::{Value, json};

use crate::{
    run::{ask, ask_and_leave, ask_detached, puppet, read_until, refusal, said, types},
    support::{
        conversation::changed_options,
        running::{Running, numbered_events},
    },
};

type Numbered = Vec<(Option<u64>, Value)>;

/// Posts a run again, as a client does that has its events up to `after`.
async fn resume(server: &Running, input: &Value, after: &str) -> reqwest::Response {
    server.post("/send-message").header("last-event-id", after).json(input).send().await.unwrap()
}

async fn numbered(response: reqwest::Response) -> Numbered {
    let status = response.status();
    let body = response.text().await.unwrap();
    assert_eq!(status, 200, "{body}");
    numbered_events(&body)
}

fn numbers(events: &Numbered) -> Vec<Option<u64>> {
    events.iter().map(|(number, _)| *number).collect()
}

fn bare(events: &Numbered) -> Vec<Value> {
    events.iter().map(|(_, event)| event.clone()).collect()
}

#[tokio::test]
async fn a_repeated_request_with_last_event_id_continues_the_stream_of_its_run() {
    let (agent, strings, _) = puppet();
    // The run itself takes the only permit.
    let server = Running::start(
        Server::new()
            .agent("puppet", agent)
            .thread_options(changed_options(|options| options.runs.max_concurrent = 1)),
    )
    .await;
    let input = ask_detached("t", "r");
    let mut stream = server.raw_run(&input).await;
    strings.send("a".to_owned()).unwrap();
    let had = read_until(&mut stream, |text| text.contains("\"delta\":\"a\"")).await;
    assert!(had.contains("id: 3\ndata: {\"type\":\"TEXT_MESSAGE_CONTENT\""), "{had}");
    drop(stream);
    let rest = resume(&server, &input, "3").await;
    strings.send("b".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let rest = numbered(rest).await;
    assert_eq!(numbers(&rest), [Some(4), Some(5), Some(6)]);
    assert_eq!(types(&bare(&rest)), ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]);
    assert_eq!(rest[0].1["delta"], "b");
    // The same holds after the end of the run, which runs only once.
    assert_eq!(numbered(resume(&server, &input, "3").await).await, rest);
    assert_eq!(resume(&server, &input, "6").await.status(), 204);
    let thread = server.thread("t").await;
    assert_eq!(said(&thread), ["user: go", "assistant: ab"]);
    assert_eq!(thread["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_snapshot_for_the_client_alone_comes_before_the_number_that_confirms_it() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    for _ in 0..2 {
        strings.send("end".to_owned()).unwrap();
    }
    server.events(&ask("t", "r1", "m1", "hi")).await;
    // The client of the second run lacks the messages of the first one.
    let events = numbered(server.run(&ask_detached("t", "r2")).await).await;
    let types: Vec<_> =
        events.iter().map(|(number, event)| (event["type"].as_str().unwrap(), *number)).collect();
    let expected = [
        ("RUN_STARTED", None),
        ("MESSAGES_SNAPSHOT", None),
        ("MESSAGES_SNAPSHOT", Some(1)),
        ("TEXT_MESSAGE_START", Some(2)),
        ("TEXT_MESSAGE_END", Some(3)),
        ("RUN_FINISHED", Some(4)),
    ];
    assert_eq!(types, expected);
}

#[tokio::test]
async fn a_client_that_connects_gets_the_numbers_of_the_running_run() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let input = ask_detached("t", "r");
    ask_and_leave(&server, &input).await;
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let connected = numbered(server.post("/threads/t/connect").send().await.unwrap()).await;
    let start = ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START"];
    assert_eq!(types(&bare(&connected))[..4], start);
    assert_eq!(numbers(&connected), [None, None, Some(1), Some(2), Some(3), Some(4), Some(5)]);
    let rest = numbered(resume(&server, &input, "2").await).await;
    assert_eq!(rest, connected[4..]);
}

#[tokio::test]
async fn a_detached_run_is_joined_by_its_id_alone_or_with_its_thread() {
    let (agent, strings, _) = puppet();
    let server =
        Running::start(Server::new().agent("puppet", agent).agent_at("/api/puppet", "other", Echo))
            .await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    let joined = server.get("/send-message?offset=-1&runId=r").await;
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    let joined = numbered(joined).await;
    assert_eq!(numbers(&joined), [Some(1), Some(2), Some(3), Some(4), Some(5)]);
    // The same holds after the end, on every path of an agent, and from any event on.
    for path in ["/send-message", "/agents/other/send-message", "/api/puppet"] {
        assert_eq!(numbered(server.get(&format!("{path}?runId=r")).await).await, joined, "{path}");
    }
    assert_eq!(
        numbered(server.get("/send-message?runId=r&threadId=t&offset=3").await).await,
        joined[3..]
    );
    let reconnected = server
        .client
        .get(server.url("/send-message?runId=r&offset=-1"))
        .header("last-event-id", "4");
    assert_eq!(numbered(reconnected.send().await.unwrap()).await, joined[4..]);
    assert_eq!(server.get("/send-message?runId=r&offset=5").await.status(), 204);
    for (query, code) in [
        ("runId=s", "404 unknown_run"),
        ("runId=r&threadId=u", "404 unknown_thread"),
        ("runId=r&offset=-2", "400 invalid_parameter"),
        ("offset=-1", "400 invalid_parameter"),
        ("threadId=t&limit=0", "400 invalid_parameter"),
        ("threadId=t&before=unknown", "400 invalid_parameter"),
        ("runId=r&runId=s", "400 invalid_url"),
    ] {
        let (status, refused) = refusal(server.get(&format!("/send-message?{query}")).await).await;
        assert_eq!(format!("{status} {refused}"), code, "{query}");
    }
    let unknown = refusal(server.get("/agents/none/send-message?runId=r").await).await;
    assert_eq!(unknown, (404, "unknown_agent".to_owned()));
}

#[tokio::test]
async fn a_thread_is_returned_with_the_run_that_can_be_joined() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let hydrated = async |query: &str| -> Value {
        server.get(&format!("/send-message?threadId=t{query}")).await.json().await.unwrap()
    };
    strings.send("one".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    server.events(&ask("t", "r1", "m1", "hi")).await;
    ask_and_leave(&server, &ask_detached("t", "r2")).await;
    let found = hydrated("").await;
    assert_eq!(found["activeRun"], json!({ "runId": "r2" }));
    assert_eq!(
        (&found["interrupts"], &found["page"]),
        (&Value::Null, &json!({ "truncated": false }))
    );
    let texts = |found: &Value| -> Vec<String> {
        let messages = found["messages"].as_array().unwrap();
        messages
            .iter()
            .map(|message| message["parts"][0]["content"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts(&found), ["hi", "one", "go"]);
    strings.send("two".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    server.until_status("t", "finished").await;
    // A page begins with a message of a person.
    for limit in [1, 2] {
        let newest = hydrated(&format!("&limit={limit}")).await;
        assert_eq!(
            (&newest["activeRun"], texts(&newest)),
            (&Value::Null, vec!["go".to_owned(), "two".to_owned()])
        );
        assert_eq!(newest["page"]["truncated"], true);
        let cursor = newest["page"]["cursor"].as_str().unwrap();
        let earlier = hydrated(&format!("&limit={limit}&before={cursor}")).await;
        assert_eq!(
            (&earlier["page"], texts(&earlier)),
            (&json!({ "truncated": false }), texts(&found)[..2].to_vec())
        );
    }
}

#[tokio::test]
async fn a_run_that_cannot_be_continued_is_not_started_again() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let refused =
        async |input: &Value, after: &str| refusal(resume(&server, input, after).await).await;
    assert_eq!(refused(&ask_detached("t", "r"), "1").await, (404, "unknown_thread".to_owned()));
    assert_eq!(server.get("/threads/t").await.status(), 404);
    strings.send("end".to_owned()).unwrap();
    server.events(&ask("t", "r", "m", "go")).await;
    assert_eq!(refused(&ask("t", "r", "m", "go"), "1").await, (404, "run_has_no_log".to_owned()));
    assert_eq!(refused(&ask("t", "other", "m", "go"), "1").await, (404, "unknown_run".to_owned()));
    for wrong in ["x", "-1", "1, 2"] {
        assert_eq!(
            refused(&ask("t", "r", "m", "go"), wrong).await,
            (400, "invalid_parameter".to_owned()),
            "{wrong:?}"
        );
    }
    assert_eq!(server.thread("t").await["runs"].as_array().unwrap().len(), 1);
}

/// `event-source-polyfill` sends no headers of its own, and repeats the URL that it began with.
#[tokio::test]
async fn a_parameter_of_the_query_stands_for_last_event_id_and_an_empty_one_is_absent() {
    let (agent, strings, _) = puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    strings.send("a".to_owned()).unwrap();
    strings.send("end".to_owned()).unwrap();
    numbered(server.run(&ask_detached("t", "r")).await).await;
    let first = |after: &str, header: Option<&str>| {
        let request = server.client.get(server.url(&format!("/threads/t/runs/r/events{after}")));
        let request = match header {
            Some(number) => request.header("last-event-id", number),
            None => request,
        };
        async { numbered(request.send().await.unwrap()).await[0].0 }
    };
    for (query, header, expected) in [
        ("?after=1&lastEventId=3", None, 4),
        ("?after=1&lastEventID=3", None, 4),
        ("?after=1&lastEventId=3", Some("2"), 3),
        ("?after=1&lastEventId=", None, 2),
        ("?after=1", Some(""), 2),
        ("?lastEventId=3", Some(" "), 4),
    ] {
        assert_eq!(first(query, header).await, Some(expected), "{query} {header:?}");
    }
    assert_eq!(
        numbered(server.get("/send-message?runId=r&offset=1&lastEventId=3").await).await[0].0,
        Some(4)
    );
    let wrong = server.get("/threads/t/runs/r/events?lastEventId=x").await;
    assert_eq!(refusal(wrong).await, (400, "invalid_parameter".to_owned()));
    // A request that has no event begins a run.
    strings.send("end".to_owned()).unwrap();
    let begun = numbered(resume(&server, &ask("t", "r2", "m2", "go"), "").await).await;
    assert_eq!(begun[0].1["type"], "RUN_STARTED");
}
