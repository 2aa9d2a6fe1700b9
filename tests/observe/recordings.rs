//! `[record]`: the files that a server writes.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::support::{
    provider::{Answer, Provider},
    recordings::{names, recordings},
    running::{events, eventually, input},
    server::{BINARY, Process},
};

fn client() -> reqwest::Client {
    agui_base::upstream::direct_client(&Default::default()).unwrap()
}

async fn run(process: &Process, input: &Value) -> Vec<Value> {
    let request = client().post(format!("{}/send-message", process.url)).json(input);
    let request = request
        .header("x-tenant", "acme")
        .header("x-other", "hidden")
        .bearer_auth("s3cret-of-the-client");
    events(&request.send().await.unwrap().text().await.unwrap())
}

fn folder_argument(folder: &Path) -> [&str; 2] {
    ["--record", folder.to_str().unwrap()]
}

#[tokio::test]
async fn a_run_is_written_with_its_request_and_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new/recordings");
    let process = Process::start(&folder_argument(&dir), &[("AGUI_RECORD__HEADERS", "x-tenant")]);
    let mut input = input("Hello");
    input["threadId"] = "../../outside".into();
    input["runId"] = "/etc/passwd\n".into();
    let events = run(&process, &input).await;
    let [lines] = &recordings(&dir, 1).await[..] else { panic!() };
    let head = &lines[0];
    assert_eq!((&head["recording"], &head["agent"]), (&json!(1), &json!("demo")));
    assert_eq!(head["headers"], json!({ "x-tenant": ["acme"] }));
    assert_eq!(head["request"]["messages"], input["messages"]);
    assert_eq!(head["request"]["threadId"], input["threadId"]);
    let recorded: Vec<_> = lines.iter().filter_map(|line| line.get("event")).cloned().collect();
    assert_eq!(recorded, events);
    assert!(lines[1..].is_sorted_by_key(|line| line["ms"].as_u64().unwrap()));
    assert_eq!(lines[lines.len() - 1]["end"], json!({ "outcome": "finished" }));
    let name = &names(&dir)[0];
    assert!(
        !lines
            .iter()
            .any(|line| line.to_string().contains("s3cret") || line.to_string().contains("hidden"))
    );
    assert!(name.contains("Z-000000-______outside-_etc_passwd_-"), "{name}");
    assert_eq!(names(folder.path()), ["new"]);
    assert_eq!(fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
}

#[tokio::test]
async fn exchanges_with_a_provider_are_recorded_without_its_key() {
    const KEY: &str = "plain-words-of-a-secret-key";
    let echoed = json!({ "choices": [{ "index": 0, "delta": { "content": format!("Your key is {KEY}.") } }] });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let provider = Provider::start().await;
    provider.answer(Answer::new(503, ["{}"]));
    provider.answer(Answer::openai(&[echoed, end]));
    let folder = tempfile::tempdir().unwrap();
    let (config, dir) = (folder.path().join("my.toml"), folder.path().join("recordings"));
    let text = format!(
        "[record]\ndir = {dir:?}\n[agents.assistant]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\n\
         base_url = \"{}/v1?api-version={KEY}\"\napi_key_env = \"TEST_KEY\"\nsystem_prompt = \"The key is {KEY}.\"\n",
        provider.url()
    );
    fs::write(&config, text).unwrap();
    let process = Process::start(&["--config", config.to_str().unwrap()], &[("TEST_KEY", KEY)]);
    run(&process, &input("Hello")).await;
    let [lines] = &recordings(&dir, 1).await[..] else { panic!() };
    let exchanges: Vec<_> = lines.iter().filter_map(|line| line.get("exchange")).collect();
    assert_eq!(exchanges.len(), 2, "{lines:?}");
    let (failed, answered) = (exchanges[0], exchanges[1]);
    assert_eq!(failed["error"]["code"], "model_unavailable");
    let url = answered["url"].as_str().unwrap();
    assert!(url.starts_with("127.0.0.1:") && url.ends_with("/v1/chat/completions"), "{url}");
    assert_eq!(answered["request"]["model"], "m");
    assert_eq!(answered["request"]["messages"][1]["content"], "Hello");
    assert_eq!(answered["request"]["messages"][0]["content"], "The key is [secret].");
    let first: Value =
        serde_json::from_str(answered["events"][0]["data"].as_str().unwrap()).unwrap();
    assert_eq!(first["choices"][0]["delta"]["content"], "Your key is [secret].");
    // The answer itself is what the client got.
    assert!(
        !lines
            .iter()
            .filter(|line| line.get("exchange").is_some())
            .any(|line| line.to_string().contains(KEY))
    );
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_recording() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(&folder_argument(folder.path()), &[]);
    let request =
        client().post(format!("{}/send-message", process.url)).json(&input("count to 1000"));
    let mut response = request.send().await.unwrap();
    response.chunk().await.unwrap();
    drop(response);
    let [lines] = &recordings(folder.path(), 1).await[..] else { panic!() };
    let last = &lines[lines.len() - 2]["event"];
    assert_eq!(
        (&last["type"], &last["outcome"]["type"]),
        (&json!("RUN_FINISHED"), &json!("cancelled"))
    );
}

#[tokio::test]
async fn a_detached_run_is_recorded_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start(&folder_argument(folder.path()), &[]);
    let mut input = input("count to 6");
    input["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let request = client().post(format!("{}/send-message", process.url)).json(&input);
    let mut response = request.send().await.unwrap();
    response.chunk().await.unwrap();
    drop(response);
    let [lines] = &recordings(folder.path(), 1).await[..] else { panic!() };
    let text: String = lines.iter().filter_map(|line| line["event"]["delta"].as_str()).collect();
    assert_eq!(text, "1 2 3 4 5 6");
    assert_eq!(lines[lines.len() - 2]["event"]["outcome"]["type"], "success");
}

#[tokio::test]
async fn what_does_not_fit_is_left_out_and_the_oldest_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let limits = [("AGUI_RECORD__MAX_FILE_BYTES", "2000"), ("AGUI_RECORD__MAX_FILES", "2")];
    let process = Process::start(&folder_argument(folder.path()), &limits);
    for text in ["first", "second"] {
        run(&process, &input(text)).await;
    }
    recordings(folder.path(), 2).await;
    let oldest = names(folder.path())[0].clone();
    // The demo repeats a long text word by word.
    let events = run(&process, &input("count to 30")).await;
    assert_eq!(events[events.len() - 1]["outcome"]["type"], "success");
    eventually("the oldest is removed", || !names(folder.path()).contains(&oldest)).await;
    let newest = &recordings(folder.path(), 2).await[1];
    assert_eq!(newest[newest.len() - 1]["end"], json!({ "outcome": "finished", "cut": true }));
    let size = fs::metadata(folder.path().join(&names(folder.path())[1])).unwrap().len();
    assert!(size < 2100, "{size}");
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_disturbs_no_run_and_is_logged_once() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("recordings");
    let process = Process::start(&folder_argument(&dir), &[]);
    run(&process, &input("Hello")).await;
    recordings(&dir, 1).await;
    fs::remove_dir_all(&dir).unwrap();
    for _ in 0..3 {
        let events = run(&process, &input("Hello")).await;
        assert_eq!(events[events.len() - 1]["outcome"]["type"], "success");
    }
    // The writer can be behind the runs, and would find the new folder for each of them.
    eventually("the failure is logged", || process.has_logged("cannot write a recording")).await;
    fs::create_dir(&dir).unwrap();
    run(&process, &input("Hello")).await;
    eventually("a recording is written", || {
        names(&dir).iter().any(|name| name.ends_with(".jsonl"))
    })
    .await;
    process.signal("-TERM");
    let (code, log) = process.ended();
    assert_eq!(code, Some(0));
    assert_eq!(log.matches("cannot write a recording").count(), 1, "{log}");
}

#[test]
fn a_folder_that_cannot_be_used_stops_the_start() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = std::process::Command::new(BINARY)
        .args(["--listen", "127.0.0.1:0", "--record", file.path().to_str().unwrap()])
        .env("AGUI_STORE__URL", "memory:")
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{log}");
    assert!(log.contains("record.dir: the folder") && log.contains("cannot be used"), "{log}");
}
