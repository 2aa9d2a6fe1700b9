//! Plays the streams of `conformance.txt`, which describes their format, and checks what a client gets.

use std::{cell::RefCell, io, time::Duration};

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    endpoint::{FakeEndpoint, Response, agent_events, assert_legal, begin_and_end, server_with},
    running::{events, input},
};

const LOG_TIMEOUT: Duration = Duration::from_secs(20);

/// A name, the messages of the client, the events of the endpoint, and the expectations with their names.
struct Case<'a> {
    name: &'a str,
    asked: Option<Value>,
    stream: Vec<Value>,
    expectations: Vec<(&'a str, &'a str)>,
}

fn cases(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix("== ") {
            cases.push(Case { name, asked: None, stream: Vec::new(), expectations: Vec::new() });
            continue;
        }
        let case = cases.last_mut().unwrap();
        if let Some((kind, members)) =
            line.split_once(' ').filter(|(kind, _)| *kind == kind.to_uppercase())
        {
            let mut event: Value =
                serde_json::from_str(members).unwrap_or_else(|error| panic!("{line}: {error}"));
            event["type"] = kind.into();
            case.stream.push(event);
        } else if let Some(messages) = line.strip_prefix("asked: ") {
            case.asked = Some(serde_json::from_str(messages).unwrap());
        } else {
            case.expectations.push(line.split_once(": ").unwrap());
        }
    }
    for case in &mut cases {
        if !case.stream.iter().any(|event| event["type"].as_str().unwrap().starts_with("RUN_")) {
            let [mut begin, end] = begin_and_end("r");
            begin["protocolVersion"] = "1.1".into();
            case.stream.insert(0, begin);
            case.stream.push(end);
        }
        case.stream.iter_mut().filter(|event| event.get("runId").is_some()).for_each(|event| {
            event["threadId"] = "t".into();
        });
    }
    cases
}

/// Returns whether a value has at least the members of another one. Lists need the same length.
fn has(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => {
            expected.iter().all(|(name, expected)| match value.get(name) {
                Some(value) => has(value, expected),
                None => expected == "absent",
            })
        }
        (Value::Array(value), Value::Array(expected)) => {
            value.len() == expected.len()
                && value.iter().zip(expected).all(|(value, expected)| has(value, expected))
        }
        _ => value == expected,
    }
}

thread_local! {
    /// The log of the server of this thread's test.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the thread. A subscriber for one thread alone would miss lines that other tests have logged before.
struct ThreadLog;

impl io::Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn has_logged(text: &str) -> bool {
    LOG.with_borrow(|log| String::from_utf8_lossy(log).contains(text))
}

fn take_log() -> String {
    String::from_utf8(LOG.take()).unwrap()
}

async fn problems(case: &Case<'_>) -> Vec<String> {
    let endpoint = FakeEndpoint::new([Response::events(&case.stream)]).await;
    let mut options = endpoint.options();
    options.raw_events = true;
    let server = server_with(options).await;
    let mut asked = input("Hello");
    asked["threadId"] = "t".into();
    if let Some(messages) = &case.asked {
        asked["messages"] = messages.clone();
    }
    take_log();
    let events = events(&server.run(&asked).await.text().await.unwrap());
    if case.asked.is_none() {
        assert_legal(&asked, &events);
    }
    let logged = case.expectations.iter().find(|(what, _)| *what == "logs").map(|(_, text)| *text);
    // Events after the end of a run are logged after it.
    let _ = timeout(LOG_TIMEOUT, async {
        while logged.is_some_and(|text| !has_logged(text)) {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let log = take_log();
    let sent = agent_events(&events);
    let thread: Value =
        server.client.get(server.url("/threads/t")).send().await.unwrap().json().await.unwrap();
    let last = events.last().unwrap();
    let ending = if last["type"] == "RUN_ERROR" { &last["code"] } else { &last["outcome"]["type"] };
    let asked = asked["messages"].as_array().unwrap().len();
    let mut problems = Vec::new();
    if logged.map_or(!log.is_empty(), |text| !log.contains(text)) {
        problems.push(format!("{}: the log has {log:?}", case.name));
    }
    for (what, expected) in &case.expectations {
        let is_text = ["ends", "logs"].contains(what);
        let expected =
            if is_text { Value::from(*expected) } else { serde_json::from_str(expected).unwrap() };
        let actual = match *what {
            "ends" => ending.clone(),
            "logs" => continue,
            "sends" => sent.iter().map(|event| event["type"].clone()).collect(),
            "messages" => json!(thread["messages"].as_array().unwrap()[asked..]),
            "state" => thread["state"].clone(),
            "request" => endpoint.requests()[0].body.clone(),
            event => sent[event.strip_prefix("event ").unwrap().parse::<usize>().unwrap()].clone(),
        };
        // A state has all of its members.
        if if *what == "state" { actual != expected } else { !has(&actual, &expected) } {
            problems.push(format!("{}: {what}: {actual}, expected {expected}; {last}", case.name));
        }
    }
    problems
}

#[tokio::test]
async fn the_streams_of_the_protocols_conformance_suite_have_their_effect() {
    let cases = cases(include_str!("conformance.txt"));
    assert!(
        cases.len() == 65 && cases.iter().all(|case| !case.expectations.is_empty()),
        "{}",
        cases.len()
    );
    // The server runs on the thread of this test.
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_ansi(false);
    let _log = tracing::subscriber::set_default(log.with_writer(|| ThreadLog).finish());
    let mut all = Vec::new();
    for case in &cases {
        all.extend(problems(case).await);
    }
    assert!(all.is_empty(), "{} problems:\n{}", all.len(), all.join("\n"));
}
