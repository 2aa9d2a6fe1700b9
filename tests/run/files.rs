//! Pictures in messages: stored once, named by a URL for clients, and with their data for agents.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        builtin::{Remote, RemoteOptions},
        emit::{TextMessage, ToolCallEvents},
        events as known,
    },
    auth::ApiKey,
    options::HttpOptions,
    protocol::{
        ContentPart, Event, Interrupt, Message, MessageContent, PartSource, RunAgentInput, event::*,
    },
    store::SqliteStore,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    run::{changed_options, types},
    support::running::{Running, events},
};

/// The messages that an agent was given, of each of its runs.
type Given = Arc<Mutex<Vec<Value>>>;

/// An agent that keeps its inputs.
fn keeping() -> (impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static, Given) {
    let given = Given::default();
    let kept = given.clone();
    let agent = move |input: RunAgentInput, _: RunContext| {
        kept.lock().push(serde_json::to_value(&input.messages).unwrap());
        known(TextMessage::whole("I see."))
    };
    (agent, given)
}

fn picture(number: u8) -> String {
    let bytes = [&b"\x89PNG\r\n\x1a\n"[..], &[number; 5000]].concat();
    BASE64_STANDARD.encode(bytes)
}

fn data(number: u8) -> Value {
    json!({ "type": "data", "value": picture(number), "mimeType": "image/png" })
}

fn message(id: &str, source: &Value) -> Value {
    let image = json!({ "type": "image", "source": source, "metadata": { "filename": "a.png" } });
    json!({ "id": id, "role": "user", "content": [{ "type": "text", "text": "What is this?" }, image] })
}

fn ask(run: &str, messages: &[Value]) -> Value {
    json!({ "threadId": "t", "runId": run, "messages": messages })
}

/// The source of the picture in a message.
fn source(message: &Value) -> &Value {
    &message["content"][1]["source"]
}

/// The id of the file that a URL names, which is as this server writes them.
fn file_of(server: &Running, source: &Value) -> String {
    let url = source["value"].as_str().unwrap_or_else(|| panic!("{source}"));
    let rest = url.strip_prefix(&server.url("/files/")).unwrap_or_else(|| panic!("{url}"));
    let (id, query) = rest.split_once('?').unwrap();
    assert!(query.contains("expires=") && query.contains("&signature="), "{url}");
    assert_eq!((&source["type"], &source["mimeType"]), (&json!("url"), &json!("image/png")));
    id.to_owned()
}

/// The messages of the last snapshot, which comes before the terminal event.
fn last_snapshot(events: &[Value]) -> &[Value] {
    let [.., snapshot, end] = events else { panic!("{events:?}") };
    assert_eq!([&snapshot["type"], &end["type"]], ["MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
    snapshot["messages"].as_array().unwrap()
}

#[tokio::test]
async fn a_picture_is_sent_once_and_its_url_stands_for_it_from_then_on() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(&folder.path().join("threads.db")).await.unwrap();
    check_urls_stand_for_pictures(Server::new().store(sqlite)).await;
    check_urls_stand_for_pictures(Server::new()).await;
}

async fn check_urls_stand_for_pictures(server: Server) {
    let (agent, given) = keeping();
    let server = Running::start(server.agent("a", agent)).await;
    let shown = server.events(&ask("r1", &[message("m1", &data(1))])).await;
    let snapshot = last_snapshot(&shown);
    let file = file_of(&server, source(&snapshot[0]));
    assert_eq!(snapshot[0]["content"][1]["metadata"], json!({ "filename": "a.png" }));
    assert_eq!(
        given.lock().pop().unwrap(),
        json!([message("m1", &data(1))]),
        "the agent gets the data"
    );

    // A client then sends its list with the URL, which may have expired, or name another host.
    let url = source(&snapshot[0])["value"].as_str().unwrap();
    let expired = url
        .replace(&server.url(""), "https://elsewhere.example/base")
        .replace("expires=", "expires=1");
    for (run, value) in [("r2", url), ("r3", &expired)] {
        let source = json!({ "type": "url", "value": value, "mimeType": "image/png" });
        let thread = server.thread("t").await;
        let mut messages = thread["messages"].as_array().unwrap().clone();
        messages[0] = message("m1", &source);
        messages.push(json!({ "id": format!("u-{run}"), "role": "user", "content": "And now?" }));
        let body = ask(run, &messages);
        assert!(body.to_string().len() < 4000);
        let shown = server.events(&body).await;
        assert!(!types(&shown).contains(&"MESSAGES_SNAPSHOT"), "the client has the URL");
        let given = given.lock().pop().unwrap();
        assert_eq!(given[0], message("m1", &data(1)), "the agent gets the data");
        let branch = server.thread("t").await;
        assert_eq!(file_of(&server, source_of(&branch, 0)), file, "the message is as it was");
        assert_eq!(branch["alternatives"], json!({}), "no branch begins");
    }
}

fn source_of(thread: &Value, at: usize) -> &Value {
    source(&thread["messages"][at])
}

#[tokio::test]
async fn no_response_names_a_file_otherwise_than_by_its_url() {
    let (agent, _) = keeping();
    let server = Running::start(Server::new().agent("a", agent)).await;
    server.events(&ask("r1", &[message("m1", &data(1))])).await;
    for path in
        ["/threads/t", "/threads/t/messages", "/threads/t/export", "/send-message?threadId=t"]
    {
        let text = server.get(path).await.text().await.unwrap();
        assert!(text.contains(&server.url("/files/file_")), "{path}: {text}");
        assert!(!text.contains("agui-server") && !text.contains(&picture(1)), "{path}: {text}");
    }
    let connected = server.post("/threads/t/connect").send().await.unwrap().text().await.unwrap();
    file_of(&server, source(&events(&connected)[1]["messages"][0]));
    // A client that lacks the messages gets them first.
    let next = json!({ "threadId": "t", "runId": "r2", "messages": [{ "id": "m2", "role": "user", "content": "hi" }] });
    let shown = server.events(&next).await;
    let snapshot = shown.iter().rfind(|event| event["type"] == "MESSAGES_SNAPSHOT").unwrap();
    file_of(&server, source(&snapshot["messages"][0]));
}

#[tokio::test]
async fn the_host_of_a_url_is_that_of_the_request_or_the_public_one() {
    let (agent, _) = keeping();
    let server = Running::start(Server::new().agent("a", agent)).await;
    server.events(&ask("r1", &[message("m1", &data(1))])).await;
    let proxied = server.client.get(server.url("/threads/t")).header("host", "localhost:99");
    let proxied =
        proxied.header("x-forwarded-proto", "https").header("x-forwarded-prefix", "/base");
    let thread: Value = proxied.send().await.unwrap().json().await.unwrap();
    let url = source_of(&thread, 0)["value"].as_str().unwrap();
    assert!(url.starts_with("https://localhost:99/base/files/file_"), "{url}");

    let (agent, _) = keeping();
    let server = Running::start(
        Server::new().agent("a", agent).http_options(at_url("https://chat.example/api/")),
    )
    .await;
    let shown = server.events(&ask("r1", &[message("m1", &data(1))])).await;
    let url = source(&last_snapshot(&shown)[0])["value"].as_str().unwrap();
    assert!(url.starts_with("https://chat.example/api/files/file_"), "{url}");
}

#[tokio::test]
async fn the_same_picture_is_one_file_however_it_is_written() {
    let (agent, given) = keeping();
    let server = Running::start(Server::new().agent("a", agent)).await;
    let text = picture(1);
    let lines = text
        .as_bytes()
        .chunks(76)
        .map(|line| str::from_utf8(line).unwrap())
        .collect::<Vec<_>>()
        .join("\r\n");
    let written = [
        data(1),
        json!({ "type": "data", "value": lines, "mimeType": "image/jpeg" }),
        json!({ "type": "data", "value": text.replace('+', "-").replace('/', "_").trim_end_matches('='), "mimeType": "" }),
        json!({ "type": "data", "value": format!("data:image/png;base64,{text}"), "mimeType": "image/png" }),
        json!({ "type": "url", "value": format!("data:image/png;base64,{text}") }),
    ];
    let messages: Vec<_> =
        written.iter().zip(0..).map(|(source, at)| message(&format!("m{at}"), source)).collect();
    let shown = server.events(&ask("r1", &messages)).await;
    let snapshot = last_snapshot(&shown);
    let files: Vec<_> =
        snapshot[..5].iter().map(|message| file_of(&server, source(message))).collect();
    assert!(files.iter().all(|file| *file == files[0]), "{files:?}");
    assert_eq!(*source(&given.lock()[0][1]), data(1));
}

#[tokio::test]
async fn what_does_not_become_a_file_stays_as_it_is_and_no_run_fails() {
    let (agent, given) = keeping();
    let options = changed_options(|options| options.files.max_file_bytes = 5000);
    let server = Running::start(Server::new().agent("a", agent).thread_options(options)).await;
    let sources = [
        data(1),
        json!({ "type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png" }),
        json!({ "type": "data", "value": "!".repeat(5000), "mimeType": "image/png" }),
        json!({ "type": "url", "value": "https://example.com/a.png" }),
        json!({ "type": "url", "value": "/files/file_0123456789abcdef0123456789abcdef?expires=1&signature=x" }),
        json!({ "type": "file", "value": "f1", "provider": "openai" }),
    ];
    let messages: Vec<_> =
        sources.iter().zip(0..).map(|(source, at)| message(&format!("m{at}"), source)).collect();
    let shown = server.events(&ask("r1", &messages)).await;
    assert!(!types(&shown).contains(&"MESSAGES_SNAPSHOT"));
    assert_eq!(given.lock()[0], json!(messages));
    assert_eq!(server.thread("t").await["messages"].as_array().unwrap()[..6], messages[..]);
}

#[tokio::test]
async fn nobody_names_the_file_of_another_owner() {
    let keys = ["ada", "bob"].map(|name| ApiKey::from_secret(name, &format!("{name}-key")));
    let (agent, given) = keeping();
    let server = Running::start(Server::new().agent("a", agent).api_keys(keys)).await;
    let run = async |owner: &str, input: &Value| {
        let request = server.post("/send-message").bearer_auth(format!("{owner}-key")).json(input);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let (_, body) = run("ada", &ask("r1", &[message("m1", &data(1))])).await;
    let url = source(&last_snapshot(&events(&body))[0]).clone();
    let named =
        json!({ "type": "file", "value": file_of(&server, &url), "provider": "agui-server" });
    let (status, _) = run("ada", &ask("r2", &[message("m2", &named)])).await;
    assert_eq!(
        (status, source(&given.lock().pop().unwrap()[2])),
        (200, &data(1)),
        "its owner may name it"
    );
    let (status, body) = run("bob", &ask("r1", &[message("m1", &named)])).await;
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("messages[0].content[1].source.value"), "{body}");
    let (status, _) = run("bob", &ask("r1", &[message("m1", &url)])).await;
    assert_eq!(
        (status, source(&given.lock().pop().unwrap()[0])),
        (200, &url),
        "it is a URL as any other"
    );
}

#[tokio::test]
async fn a_run_beside_all_threads_gets_the_data_as_well() {
    let (agent, given) = keeping();
    let server = Running::start(Server::new().agent("a", agent)).await;
    let shown = server.events(&ask("r1", &[message("m1", &data(1))])).await;
    let mut suggest = ask("r2", &[message("m1", source(&last_snapshot(&shown)[0]))]);
    suggest["tools"] =
        json!([{ "name": "copilotkitSuggest", "description": "", "parameters": {} }]);
    suggest["forwardedProps"] = json!({ "toolChoice": { "type": "function", "function": { "name": "copilotkitSuggest" } } });
    server.events(&suggest).await;
    assert_eq!(given.lock().pop().unwrap(), json!([message("m1", &data(1))]));
    assert_eq!(server.thread("t").await["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn the_charset_of_a_text_is_kept() {
    let (agent, given) = keeping();
    let server = Running::start(Server::new().agent("a", agent)).await;
    let text = |mime_type: &str| {
        let source = json!({ "type": "data", "value": BASE64_STANDARD.encode([0xd6; 2000]), "mimeType": mime_type });
        json!({ "id": "m1", "role": "user", "content": [{ "type": "document", "source": source }] })
    };
    let shown = server.events(&ask("r1", &[text("text/plain;charset=gbk")])).await;
    assert_eq!(
        last_snapshot(&shown)[0]["content"][0]["source"]["mimeType"],
        "text/plain;charset=gbk"
    );
    let next = json!({ "id": "m2", "role": "user", "content": "And?" });
    server.events(&ask("r2", &[last_snapshot(&shown)[0].clone(), next])).await;
    assert_eq!(given.lock().pop().unwrap()[0], text("text/plain;charset=gbk"));
    assert_eq!(
        server.thread("t").await["alternatives"]["m1"],
        Value::Null,
        "the message is as it was"
    );
}

/// An agent whose tool shows a picture.
fn showing(_: RunAgentInput, _: RunContext) -> EventStream {
    let call = ToolCallEvents::with_id("c", "draw");
    let image = ContentPart::image(PartSource::Data {
        value: picture(7),
        mime_type: "image/png".to_owned(),
    });
    let content = MessageContent::Parts(vec![ContentPart::text("A chart:"), image]);
    let result = vec![ToolCallResult::new("result", "c", content).into()];
    known([call.whole(&json!({})), result, TextMessage::whole("There.")].concat())
}

#[tokio::test]
async fn a_picture_of_a_tool_is_a_file_at_the_end_of_its_run() {
    let server = Running::start(Server::new().agent("a", showing)).await;
    for (thread, mode) in [("cancel", "cancel"), ("continue", "continue")] {
        let input = json!({
            "threadId": thread, "runId": "r", "forwardedProps": { "onDisconnect": mode },
            "messages": [{ "id": "m", "role": "user", "content": "draw" }],
        });
        let shown = server.events(&input).await;
        let live = shown.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
        assert_eq!(*source(live), data(7), "{mode}: live events have the data");
        let result = |messages: &[Value]| {
            messages.iter().find(|message| message["role"] == "tool").cloned().unwrap()
        };
        let of_snapshot = result(last_snapshot(&shown));
        file_of(&server, source(&of_snapshot));
        let stored = server.thread(thread).await;
        assert_eq!(result(stored["messages"].as_array().unwrap()), of_snapshot);
    }
    // Another client follows the log later.
    let followed = server.get("/threads/continue/runs/r/events").await.text().await.unwrap();
    let followed: Vec<_> =
        crate::support::running::numbered_events(&followed).into_iter().map(|(_, it)| it).collect();
    let tool = last_snapshot(&followed).iter().find(|message| message["role"] == "tool").unwrap();
    file_of(&server, source(tool));
    // A client before 1.0 reads texts only: the picture is its URL in Markdown.
    let old = json!({ "threadId": "old", "runId": "r", "forwardedProps": {}, "state": {}, "messages": [
        { "id": "m", "role": "user", "content": "draw" },
    ] });
    let shown = server.post("/send-message").header("accept", "text/event-stream").json(&old);
    let shown = events(&shown.send().await.unwrap().text().await.unwrap());
    let tool = last_snapshot(&shown).iter().find(|message| message["role"] == "tool").unwrap();
    let url = server.url("/files/file_");
    assert!(
        tool["content"].as_str().unwrap().starts_with(&format!("A chart:\n\n![image]({url}")),
        "{tool}"
    );
    // The recording has the agent's own events, also if the conversation before had files.
    let recording = server.get("/threads/continue/runs/r/recording").await.text().await.unwrap();
    assert!(
        !recording.contains("MESSAGES_SNAPSHOT") && !recording.contains("agui-server"),
        "{recording}"
    );
}

#[tokio::test]
async fn before_a_question_the_snapshot_has_the_pictures_of_the_run_as_files() {
    let asking = |input: RunAgentInput, cx: RunContext| {
        let question = RunFinished::new(
            input.thread_id.clone(),
            input.run_id.clone(),
            RunOutcome::Interrupt { interrupts: vec![Interrupt::new("confirm")] },
        );
        let shown = showing(input, cx);
        let asked = futures::stream::iter([Ok(Event::from(question))]);
        agui_server::agent::event_stream(futures::StreamExt::chain(shown, asked))
    };
    let server = Running::start(Server::new().agent("a", asking)).await;
    for mode in ["cancel", "continue"] {
        let input = json!({
            "threadId": mode, "runId": "r", "forwardedProps": { "onDisconnect": mode },
            "messages": [message("m", &data(1))],
        });
        let shown = server.events(&input).await;
        let kinds = types(&shown);
        assert_eq!(
            kinds[kinds.len() - 3..],
            ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"],
            "{mode}"
        );
        assert_eq!(kinds.iter().filter(|kind| **kind == "MESSAGES_SNAPSHOT").count(), 1);
        let snapshot = last_snapshot(&shown);
        for message in snapshot
            .iter()
            .filter(|message| ["user", "tool"].contains(&message["role"].as_str().unwrap()))
        {
            file_of(&server, source(message));
        }
    }
}

/// An agent that restates its messages, as some frameworks do at the end of a run.
fn restating(input: RunAgentInput, _: RunContext) -> EventStream {
    let mut messages = input.messages.to_vec();
    messages.push(Message::assistant("a", "Seen."));
    known([MessagesSnapshot::new(messages).into()])
}

#[tokio::test]
async fn an_agent_that_restates_its_messages_does_not_change_them() {
    let server = Running::start(Server::new().agent("a", restating)).await;
    let shown = server.events(&ask("r1", &[message("m1", &data(1))])).await;
    let snapshots: Vec<_> =
        shown.iter().filter(|event| event["type"] == "MESSAGES_SNAPSHOT").collect();
    assert_eq!(snapshots.len(), 2);
    for snapshot in snapshots {
        file_of(&server, source(&snapshot["messages"][0]));
    }
    file_of(&server, source_of(&server.thread("t").await, 0));
}

#[tokio::test]
async fn copies_share_the_files_of_their_owner() {
    let (agent, given) = keeping();
    let server = Running::start(Server::new().agent("a", agent)).await;
    server.events(&ask("r1", &[message("m1", &data(1))])).await;
    let file = file_of(&server, source_of(&server.thread("t").await, 0));
    let posted = async |path: &str, body: &Value| {
        let response = server.post(path).json(body).send().await.unwrap();
        assert_eq!(response.status(), 201, "{}", response.text().await.unwrap());
    };
    posted("/threads/t/fork", &json!({ "threadId": "fork" })).await;
    let inline: Value = server.get("/threads/t/export?files=inline").await.json().await.unwrap();
    assert_eq!(
        inline["messages"][0]["message"],
        message("m1", &data(1)),
        "a copy that stands alone"
    );
    assert_eq!(server.get("/threads/t/export?files=x").await.status(), 400);
    let mut export: Value = server.get("/threads/t/export").await.json().await.unwrap();
    posted("/threads/import?threadId=copy", &export).await;
    export["messages"][0]["message"] = message("m1", &data(1));
    posted("/threads/import?threadId=of-data", &export).await;
    for thread in ["fork", "copy", "of-data"] {
        assert_eq!(file_of(&server, source_of(&server.thread(thread).await, 0)), file, "{thread}");
        let next = json!({ "id": "m2", "role": "user", "content": "And?" });
        server.events(&json!({ "threadId": thread, "runId": "r9", "messages": [next] })).await;
        assert_eq!(given.lock().pop().unwrap()[0], message("m1", &data(1)), "{thread}");
    }
    export["messages"][0]["message"] = message(
        "m1",
        &json!({
            "type": "file", "value": "file_0123456789abcdef0123456789abcdef", "provider": "agui-server",
        }),
    );
    let refused = server.post("/threads/import?threadId=x").json(&export).send().await.unwrap();
    let (status, body) = (refused.status(), refused.text().await.unwrap());
    assert!(
        status == 400 && body.contains("messages[0].message.content[1].source.value"),
        "{status}: {body}"
    );
}

/// A server whose agent is at another server. Returns the inputs of that agent.
async fn forwarding(public_url: Option<&str>) -> (Running, Running, Given) {
    let (agent, given) = keeping();
    let other = Running::start(Server::new().agent("kept", agent)).await;
    let remote = Remote::new(RemoteOptions::new(other.url("/agents/kept/send-message"))).unwrap();
    let options = public_url.map_or_else(HttpOptions::default, at_url);
    (
        Running::start(Server::new().agent("remote", remote).http_options(options)).await,
        other,
        given,
    )
}

fn at_url(public_url: &str) -> HttpOptions {
    HttpOptions { public_url: Some(public_url.to_owned()), ..HttpOptions::default() }
}

async fn uploaded(server: &Running, number: u8) -> Value {
    let bytes = [&b"\x89PNG\r\n\x1a\n"[..], &vec![number; 2_500_000]].concat();
    let response =
        server.post("/files").header("content-type", "image/png").body(bytes).send().await.unwrap();
    response.json::<Value>().await.unwrap()["part"]["source"].clone()
}

#[tokio::test]
async fn a_remote_agent_gets_the_newest_files_within_what_servers_take() {
    let (server, _other, given) = forwarding(None).await;
    let mut messages = Vec::new();
    for number in 1..=3 {
        messages.push(message(&format!("m{number}"), &uploaded(&server, number).await));
    }
    let events = server.events(&ask("r", &messages)).await;
    assert_eq!(types(&events).last(), Some(&"RUN_FINISHED"), "{events:?}");
    let given = given.lock().pop().unwrap();
    let note = given[0]["content"][1]["text"].as_str().unwrap();
    assert!(note.starts_with("(Attached: \"a.png\", image/png. It is left out"), "{note}");
    assert_eq!(
        [source(&given[1])["type"].as_str(), source(&given[2])["type"].as_str()],
        [Some("data"); 2]
    );
}

#[tokio::test]
async fn a_remote_agent_gets_urls_if_they_are_public() {
    let (server, _other, given) = forwarding(Some("https://chat.example")).await;
    let picture = uploaded(&server, 1).await;
    let events = server.events(&ask("r", &[message("m", &picture)])).await;
    assert_eq!(types(&events).last(), Some(&"RUN_FINISHED"), "{events:?}");
    let given = given.lock().pop().unwrap();
    let url = source(&given[0])["value"].as_str().unwrap();
    assert!(
        url.starts_with("https://chat.example/files/file_") && url.contains("&signature="),
        "{url}"
    );
    let again = server.events(&ask("r2", &[message("m", &picture), message("n", &picture)])).await;
    assert_eq!(types(&again).last(), Some(&"RUN_FINISHED"), "{again:?}");
}
