//! `kind = "replay"`: the events that a client gets from recordings, and failures on request.

use std::{fs, path::Path, time::Instant};

use serde_json::{Value, json};

use crate::support::{
    recordings::recordings,
    running::{events, input},
    server::{BINARY, Process},
};

fn client() -> reqwest::Client {
    agui_base::upstream::direct_client(&Default::default()).unwrap()
}

async fn body(process: &Process, input: &Value) -> Result<String, reqwest::Error> {
    client().post(format!("{}/send-message", process.url)).json(input).send().await?.text().await
}

async fn run(process: &Process, input: &Value) -> Vec<Value> {
    events(&body(process, input).await.unwrap())
}

/// Records the runs of the demo for these inputs. Returns their events.
async fn record(folder: &Path, inputs: &[Value]) -> Vec<Vec<Value>> {
    let process = Process::start(&["--record", folder.to_str().unwrap()], &[]);
    let mut all = Vec::new();
    for (number, input) in (1..).zip(inputs) {
        all.push(run(&process, input).await);
        recordings(folder, number).await;
    }
    all
}

fn replay(folder: &Path, more: &str) -> Process {
    let config = folder.join("replay.toml");
    fs::write(&config, format!("[agents.recorded]\nkind = \"replay\"\ndir = \".\"\n{more}"))
        .unwrap();
    Process::start(&["--config", config.to_str().unwrap()], &[("AGUI_STORE__URL", "memory:")])
}

/// The events without the frame, whose ids are those of the new run.
fn inner(events: &[Value]) -> &[Value] {
    &events[1..events.len() - 1]
}

fn error_code(events: &[Value]) -> &Value {
    &events[events.len() - 1]["code"]
}

fn with_replay(mut input: Value, options: Value) -> Value {
    input["forwardedProps"] = json!({ "replay": options });
    input
}

#[tokio::test]
async fn a_conversation_gets_its_own_recording() {
    let folder = tempfile::tempdir().unwrap();
    let recorded =
        record(folder.path(), &[input("Hello"), input("count to 3"), input("weather in Paris")])
            .await;
    let process = replay(folder.path(), "pace = 0.0");
    for (text, recorded) in
        [("count to 3", &recorded[1]), ("Hello", &recorded[0]), ("weather in Paris", &recorded[2])]
    {
        let replayed = run(&process, &input(text)).await;
        assert_eq!(inner(&replayed), inner(recorded));
        assert_eq!(
            replayed[replayed.len() - 1]["outcome"],
            recorded[recorded.len() - 1]["outcome"]
        );
    }
    assert_eq!(error_code(&run(&process, &input("never said")).await), "no_recording");
    assert_eq!(
        error_code(&run(&process, &with_replay(input("Hello"), json!({ "pace": -1 }))).await),
        "invalid_replay"
    );
}

#[tokio::test]
async fn a_conversation_with_other_words_of_the_agent_gets_the_recording_of_the_same_user() {
    let folder = tempfile::tempdir().unwrap();
    let conversation = |answer: &str, second: &str| {
        let mut conversation = input("Hello");
        conversation["messages"] = json!([
            { "id": "m1", "role": "user", "content": "Hello" },
            { "id": "a1", "role": "assistant", "content": answer },
            { "id": "m2", "role": "user", "content": second },
        ]);
        conversation
    };
    let asked = [
        conversation("Hi!", "count to 3"),
        conversation("Hey!", "count to 2"),
        conversation("Hi!", "count to 2"),
    ];
    let recorded = record(folder.path(), &asked).await;
    let process = replay(folder.path(), "pace = 0.0");
    for (answer, second, recorded) in [
        ("Good day!", "count to 3", &recorded[0]),
        // The first of the two that fit, or the one that is the same.
        ("Good day!", "count to 2", &recorded[1]),
        ("Hi!", "count to 2", &recorded[2]),
    ] {
        assert_eq!(
            inner(&run(&process, &conversation(answer, second)).await),
            inner(recorded),
            "{answer} {second}"
        );
    }
    assert_eq!(
        error_code(&run(&process, &conversation("Hi!", "count to 4")).await),
        "no_recording"
    );
}

#[tokio::test]
async fn a_run_can_be_repeated_in_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = record(folder.path(), &[input("Hello")]).await.remove(0);
    let process = replay(folder.path(), "pace = 0.0");
    let mut again = input("Hello");
    // A page that regenerates an answer sends a list that ends with the user's message.
    for id in ["r1", "r2", "r3"] {
        again["runId"] = id.into();
        let replayed = run(&process, &again).await;
        assert_eq!(inner(&replayed), inner(&recorded), "{id}");
        assert_eq!(replayed[replayed.len() - 1]["outcome"]["type"], "success");
    }
    let thread = format!("{}/threads/{}", process.url, again["threadId"].as_str().unwrap());
    let thread: Value = client().get(thread).send().await.unwrap().json().await.unwrap();
    assert_eq!(thread["messages"].as_array().unwrap().len(), 2, "{thread}");
}

#[tokio::test]
async fn an_approval_is_replayed_over_two_runs() {
    let folder = tempfile::tempdir().unwrap();
    let ask = input("review");
    let recording = Process::start(&["--record", folder.path().to_str().unwrap()], &[]);
    let asked = run(&recording, &ask).await;
    let interrupts = asked[asked.len() - 1]["outcome"]["interrupts"].clone();
    let answer = |interrupts: &Value| {
        let mut answer = ask.clone();
        let entry = json!({ "interruptId": interrupts[0]["id"], "status": "resolved", "payload": { "approved": true } });
        (answer["runId"], answer["resume"]) = ("r2".into(), json!([entry]));
        answer
    };
    let answered = run(&recording, &answer(&interrupts)).await;
    assert_eq!(answered[answered.len() - 1]["outcome"]["type"], "success", "{answered:?}");
    recordings(folder.path(), 2).await;
    let process = replay(folder.path(), "pace = 0.0");
    let replayed = run(&process, &ask).await;
    assert_eq!(inner(&replayed), inner(&asked));
    assert_eq!(replayed[replayed.len() - 1]["outcome"]["interrupts"], interrupts);
    assert_eq!(inner(&run(&process, &answer(&interrupts)).await), inner(&answered));
}

#[tokio::test]
async fn the_pace_is_a_factor_of_the_recorded_waiting_times() {
    let folder = tempfile::tempdir().unwrap();
    // One word every 100 ms.
    record(folder.path(), &[input("count to 8")]).await;
    let process = replay(folder.path(), "pace = 0.0");
    let time = async |options: Value| {
        let begun = Instant::now();
        run(&process, &with_replay(input("count to 8"), options)).await;
        begun.elapsed().as_millis()
    };
    let (recorded, double) = (time(json!({ "pace": 1 })).await, time(json!({ "pace": 2 })).await);
    assert!(recorded >= 600, "{recorded}");
    assert!(double >= 1200, "{double}");
    let slow = time(json!({ "fault": "slow", "faultAfter": 9 })).await;
    assert!(slow >= 500, "{slow}");
}

#[tokio::test]
async fn faults_break_a_run_where_the_request_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = record(folder.path(), &[input("count to 3")]).await.remove(0);
    let process = replay(folder.path(), "pace = 0.0\nfault = \"error\"");
    let failed = run(&process, &input("count to 3")).await;
    assert_eq!(error_code(&failed), "replay_fault");

    let cut = with_replay(input("count to 3"), json!({ "fault": "cut", "faultAfter": 3 }));
    let mut response =
        client().post(format!("{}/send-message", process.url)).json(&cut).send().await.unwrap();
    let mut text = String::new();
    let broken = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => text.push_str(std::str::from_utf8(&chunk).unwrap()),
            end => break end,
        }
    };
    assert!(broken.is_err(), "the response ended as if it were whole: {text}");
    assert_eq!(events(&text)[1..], recorded[1..4]);

    let stalled = with_replay(input("count to 3"), json!({ "fault": "stall", "faultAfter": 3 }));
    let request = client().post(format!("{}/send-message", process.url)).json(&stalled);
    let mut response = request.send().await.unwrap();
    let mut text = String::new();
    while events_or_none(&text).is_none_or(|events| events.len() < 4) {
        text.push_str(std::str::from_utf8(&response.chunk().await.unwrap().unwrap()).unwrap());
    }
    let more = tokio::time::timeout(std::time::Duration::from_millis(500), response.chunk()).await;
    assert!(more.is_err(), "something came after the stall");
}

fn events_or_none(text: &str) -> Option<Vec<Value>> {
    text.ends_with("\n\n").then(|| events(text))
}

#[test]
fn a_folder_without_recordings_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("my.toml");
    fs::write(&config, "[agents.x]\nkind = \"replay\"\ndir = \"r\"\n").unwrap();
    fs::create_dir(folder.path().join("r")).unwrap();
    let check = || {
        let command = std::process::Command::new(BINARY)
            .args(["check", "--config", config.to_str().unwrap()])
            .output()
            .unwrap();
        String::from_utf8(command.stderr).unwrap()
    };
    let problem = check();
    assert!(
        problem.contains("my.toml:3:1: agents.x.dir:") && problem.contains("has no recordings"),
        "{problem}"
    );
    fs::write(folder.path().join("r/a.jsonl"), "{\"recording\":1}\n").unwrap();
    assert!(check().contains("a.jsonl:1: expected the head of a recording"), "{}", check());
}
