//! The violations that the checker must report.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::{
    http::{self, Broken, Event, EventStream},
    model::{Existence, Report, Thread, check_stream},
    proxy::MAX_REPEATED,
};

const RESPONSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
    27\r\ndata: {\"type\":\"RUN_STARTED\",\"n\":\"11\"}\n\n\r\n\
    48\r\ndata: {\"type\":\"A\",\"delta\":\"aaa\"}\n\ndata: {\"type\":\"RUN_FINISHED\",\"n\":22}\n\n\r\n0\r\n\r\n";

async fn read_events(response: &[u8]) -> Result<Vec<String>, Broken> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serve = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let _ = client.read(&mut [0; 1024]).await.unwrap();
        client.write_all(response).await.unwrap();
        client.shutdown().await.unwrap();
        // Waits until the client has closed: otherwise it may see a reset.
        let _ = client.read(&mut [0; 1024]).await;
    };
    let read = async {
        let mut stream = EventStream::new(http::send(address, "GET", "/", "key", None).await?);
        let mut events = Vec::new();
        while let Some(event) = stream.next().await? {
            events.push(event.json);
        }
        Ok(events)
    };
    tokio::join!(serve, read).1
}

#[tokio::test]
async fn a_response_with_repeated_bytes_is_broken_or_has_the_same_events() {
    let whole = read_events(RESPONSE.as_bytes()).await.unwrap();
    assert_eq!(whole.len(), 3);
    let mut broken = 0;
    for begin in 0..RESPONSE.len() {
        for end in begin + 1..=RESPONSE.len().min(begin + MAX_REPEATED) {
            let repeated = format!("{}{}", &RESPONSE[..end], &RESPONSE[begin..]);
            match read_events(repeated.as_bytes()).await {
                Err(_) => broken += 1,
                Ok(events) => assert_eq!(events, whole, "{repeated:?}"),
            }
        }
    }
    println!("{broken} responses with repeated bytes were refused");
    assert!(broken > 1000, "{broken}");
}

#[tokio::test]
async fn a_response_that_ends_early_is_broken() {
    for length in 0..RESPONSE.len() {
        assert!(read_events(&RESPONSE.as_bytes()[..length]).await.is_err(), "{length}");
    }
}

fn thread() -> (Thread, Value) {
    let messages = json!([
        { "id": "u", "role": "user", "content": "say" },
        { "id": "a", "role": "assistant", "content": "You said: say" },
    ]);
    let mut thread = Thread::new("t".to_owned());
    (thread.existence, thread.messages) =
        (Existence::Present, messages.as_array().unwrap().clone());
    thread.runs.entry("r".to_owned()).or_default().learn(&events([
        "RUN_STARTED",
        "A",
        "RUN_FINISHED",
    ]));
    (thread, json!({ "messages": messages, "runs": [{ "runId": "r", "status": "finished" }] }))
}

fn events<const N: usize>(names: [&str; N]) -> Vec<Event> {
    let event = |(number, name): (u64, &str)| {
        let value = json!({ "type": name });
        Event { number: Some(number), json: value.to_string(), value }
    };
    (1..).zip(names).map(event).collect()
}

/// Changes a thread so that it differs from what was acknowledged.
type Break = fn(&mut Value);

fn violations(thread: &Thread, view: Option<&Value>) -> usize {
    let report = Report::default();
    thread.check_view(view, &report);
    report.violations().len()
}

#[test]
fn a_thread_that_differs_from_what_was_acknowledged_is_a_violation() {
    let (mut thread, view) = thread();
    assert_eq!(violations(&thread, Some(&view)), 0);
    assert_eq!(violations(&thread, None), 1, "the thread is gone");
    let broken: [(&str, Break); 6] = [
        ("a message is gone", |view| drop(view["messages"].as_array_mut().unwrap().pop())),
        ("another text", |view| view["messages"][1]["content"] = "You said".into()),
        ("another order", |view| view["messages"].as_array_mut().unwrap().reverse()),
        ("a message is there twice", |view| {
            let first = view["messages"][0].clone();
            view["messages"].as_array_mut().unwrap().push(first);
        }),
        ("the run is still running", |view| view["runs"][0]["status"] = "running".into()),
        ("the run has another end", |view| view["runs"][0]["status"] = "cancelled".into()),
    ];
    for (what, breaks) in broken {
        let mut other = view.clone();
        breaks(&mut other);
        assert_eq!(violations(&thread, Some(&other)), 1, "{what}");
    }
    thread.clear();
    assert_eq!(violations(&thread, Some(&view)), 1, "the thread was deleted");
}

#[test]
fn a_log_or_a_stream_with_a_lost_or_doubled_event_is_a_violation() {
    let (thread, _) = thread();
    let check = |log: &[Event]| {
        let report = Report::default();
        thread.check_log("r", log, &report);
        check_stream(log, true, &|| "stream".to_owned(), &report);
        !report.violations().is_empty()
    };
    assert!(!check(&events(["RUN_STARTED", "A", "RUN_FINISHED"])));
    assert!(check(&events(["RUN_STARTED", "A"])), "no terminal event");
    assert!(
        check(&events(["RUN_STARTED", "A", "RUN_FINISHED", "RUN_FINISHED"])),
        "two terminal events"
    );
    assert!(
        check(&events(["RUN_STARTED", "B", "RUN_FINISHED"])),
        "another event than the one that was read"
    );
    let mut gap = events(["RUN_STARTED", "A", "RUN_FINISHED"]);
    gap.remove(1);
    assert!(check(&gap), "a gap");
}
