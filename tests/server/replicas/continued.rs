//! Detached runs whose server is stopped or killed, and that continue.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tempfile::tempdir;

use super::{
    ask_detached,
    client::{Endpoint, Received, Replica, Stream},
    poll::poll_until,
    postgres::Postgres,
    provider::{Answer, Provider, Step},
    proxy::Proxy,
    said,
};

/// A model with tools of each kind. All of them are answered by one fake server.
pub(crate) fn config(url: &str) -> String {
    format!(
        r#"
[agents.clerk]
kind = "llm"
provider = "openai"
model = "m"
base_url = "{url}"
api_key_env = "AGUI_KEY_CLERK"
tools = ["read", "set", "send"]
[tools.read]
kind = "http"
description = "Reads"
url = "{url}/read"
[tools.set]
kind = "http"
description = "Sets"
method = "PUT"
url = "{url}/set"
[tools.send]
kind = "http"
description = "Sends"
method = "POST"
url = "{url}/send"
"#
    )
}

pub(super) fn start(folder: &Path, config: &str) -> Replica {
    let file = folder.join("config.toml");
    fs::write(&file, config).unwrap();
    let (data, file) = (folder.to_str().unwrap(), file.to_str().unwrap());
    Replica::start_with(
        &["--config", file],
        &[
            ("AGUI_SERVER__DATA_DIR", data),
            ("AGUI_SERVER__DRAIN_SECS", "0"),
            ("AGUI_KEY_CLERK", "key"),
        ],
    )
}

pub(super) fn text(content: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "content": content } }] })
}

pub(crate) fn answer_of_calls(names: &[&str]) -> Value {
    let calls: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let function = json!({ "name": name, "arguments": "{}" });
            json!({ "index": index, "id": format!("call_{name}"), "type": "function", "function": function })
        })
        .collect();
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": calls }, "finish_reason": "tool_calls" }] })
}

pub(super) fn stop() -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12 } })
}

pub(super) fn answer_of_text(content: &str) -> Answer {
    Answer::openai(&[text(content), stop()])
}

/// An answer that begins and stalls.
pub(super) fn half(content: &str) -> Answer {
    Answer::stream([format!("data: {}\n\n", text(content))]).then(Step::Stall)
}

fn names(events: &[Received]) -> Vec<&str> {
    events.iter().map(Received::name).collect()
}

pub(super) fn continued(events: &[Received]) -> Vec<&Value> {
    let events = events.iter().filter(|it| it.event["name"] == "agui-server.run_continued");
    events.map(|it| &it.event["value"]).collect()
}

/// The texts of the messages that a client has after the events.
pub(crate) fn folded(events: &[Received]) -> Vec<String> {
    let input = agui_server::protocol::RunAgentInput::new("t", "r", Vec::new());
    let mut transcript = agui_run::Transcript::from_input(&input);
    events
        .iter()
        .for_each(|it| transcript.apply(&serde_json::from_value(it.event.clone()).unwrap()));
    let messages = transcript.messages();
    let texts = messages.iter().map(|message| serde_json::to_value(message).unwrap());
    texts
        .filter(|it| it["role"] == "assistant")
        .map(|it| it["content"].as_str().unwrap_or("").to_owned())
        .collect()
}

/// The text of the demo agent when it counts.
pub(crate) fn counted(last: u32) -> String {
    (1..=last).map(|n| n.to_string()).collect::<Vec<_>>().join(" ")
}

/// Sends SIGTERM, and waits for the end of the process.
fn terminate(server: Replica) {
    server.process.signal("-TERM");
    let (code, log) = server.process.ended();
    assert_eq!(code, Some(0), "{log}");
}

#[tokio::test]
async fn a_model_continues_after_its_last_complete_answer_when_its_server_is_stopped_and_started_again()
 {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let config = config(&provider.url());
    let server = start(folder.path(), &config);
    provider.answer(Answer::openai(&[text("I look."), answer_of_calls(&["read"])]));
    provider.answer(Answer::new(200, ["twelve"]).header("content-type", "text/plain"));
    provider.answer(half("There are tw"));
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = server.request(Method::POST, "/send-message").header("traceparent", trace);
    let mut started =
        Stream::of(request.json(&ask_detached("r", "how many?")).send().await.unwrap()).await;
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|it: &Received| it.event["delta"] == "There are tw") {
        seen.push(started.next().await.unwrap());
    }
    terminate(server);
    assert!(started.next_or_cut().await.is_err(), "the client has to reconnect");

    provider.answer(answer_of_text("There are twelve."));
    let server = start(folder.path(), &config);
    let thread = server.until_status("finished").await;
    assert_eq!(
        said(&thread),
        ["user: how many?", "assistant: I look.", "tool: twelve", "assistant: There are twelve."]
    );
    let rest = server.follow("r", seen.last().unwrap().number.unwrap()).await.rest().await;
    assert_eq!(
        names(&rest),
        [
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "CUSTOM",
            "MESSAGES_SNAPSHOT",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
    );
    assert_eq!(continued(&rest), [&json!({ "attempt": 1, "cause": "handed_over" })]);
    // The usage of the first answer came with its mark: this provider reports only that of the last one.
    assert_eq!(rest[9].event["usage"][0]["inputTokens"], 10);
    let all = server.follow("r", 0).await.rest().await;
    assert_eq!(folded(&all), ["I look.", "There are twelve."]);
    assert_eq!(thread["runs"][0]["events"], all.last().unwrap().number.unwrap());
    let asked: Vec<_> = provider.requests().iter().map(|it| it.path.clone()).collect();
    assert_eq!(asked, ["/chat/completions", "/read", "/chat/completions", "/chat/completions"]);
    let traced = provider
        .requests()
        .iter()
        .filter(|it| it.headers["traceparent"].to_str().unwrap() == trace)
        .count();
    assert_eq!(traced, 4, "the run that continues is in the trace of its request");
    let again = &provider.requests()[3].body["messages"];
    assert_eq!(again[2]["content"], "twelve", "{again}");
    assert_eq!(again.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn of_three_calls_that_a_killed_server_ran_only_the_one_that_must_not_be_repeated_is_not_run_again()
 {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let config = config(&provider.url());
    let server = start(folder.path(), &config);
    provider.answer(Answer::openai(&[answer_of_calls(&["read", "set", "send"])]));
    for _ in 0..3 {
        provider.answer(Answer::stream([""]).then(Step::Stall));
    }
    let started = server.run(&ask_detached("r", "go")).await;
    poll_until("all tools are called", async || (provider.requests().len() == 4).then_some(()))
        .await;
    server.kill();
    drop(started);

    for _ in 0..2 {
        provider.answer(Answer::new(200, ["done"]).header("content-type", "text/plain"));
    }
    provider.answer(answer_of_text("Two are done."));
    let server = start(folder.path(), &config);
    let thread = server.until_status("finished").await;
    let requests = provider.requests();
    let key = |path: &str| {
        let of_path = requests.iter().filter(|it| it.path == path);
        of_path
            .map(|it| it.headers.get("idempotency-key").map(|key| key.to_str().unwrap().to_owned()))
            .collect::<Vec<_>>()
    };
    let (read, set, send) = (key("/read"), key("/set"), key("/send"));
    assert_eq!((read.len(), set.len(), send.len()), (2, 2, 1));
    assert!(
        set[0].is_some() && set[0] == set[1] && send[0].is_some() && send[0] != set[0],
        "{set:?} {send:?}"
    );
    let results = thread["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "tool");
    let results: Vec<_> = results.map(|it| it["content"].as_str().unwrap()).collect();
    assert_eq!(results.iter().filter(|it| **it == "done").count(), 2, "{results:?}");
    assert!(
        results.iter().any(|it| it.contains("Whether it took effect is unknown")),
        "{results:?}"
    );
    let all = server.follow("r", 0).await.rest().await;
    assert_eq!(continued(&all), [&json!({ "attempt": 1, "cause": "server_lost" })]);
    assert_eq!(all.iter().filter(|it| it.name() == "TOOL_CALL_RESULT").count(), 3);
}

/// Starts a run that calls `send`, and kills the server during the call. Returns the run's question
/// after the restart.
async fn asked_about_send(folder: &Path, provider: &Provider) -> (Replica, Value) {
    let config = config(&provider.url())
        .replace("model = \"m\"", "model = \"m\"\nunknown_outcome = \"ask\"");
    let server = start(folder, &config);
    provider.answer(Answer::openai(&[answer_of_calls(&["read", "send"])]));
    provider.answer(Answer::stream([""]).then(Step::Stall));
    provider.answer(Answer::stream([""]).then(Step::Stall));
    let started = server.run(&ask_detached("r", "go")).await;
    poll_until("both tools are called", async || (provider.requests().len() == 3).then_some(()))
        .await;
    server.kill();
    drop(started);
    provider.answer(Answer::new(200, ["twelve"]).header("content-type", "text/plain"));
    let server = start(folder, &config);
    let thread = server.until_status("interrupted").await;
    assert_eq!(thread["runs"][0]["takeovers"], 1);
    let [question] = &thread["interrupts"].as_array().unwrap()[..] else { panic!("{thread}") };
    assert_eq!(
        (&question["reason"], &question["toolCallId"]),
        (&json!("outcome_unknown"), &json!("call_send"))
    );
    (server, question.clone())
}

/// Answers the question. Returns the result of the call, as the model gets it, and the number of
/// calls of the tool.
async fn result_after_answer(answer: Option<Value>) -> (String, usize) {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let (server, question) = asked_about_send(folder.path(), &provider).await;
    if answer.as_ref().is_some_and(|answer| answer["outcome"] == "repeat") {
        provider.answer(Answer::new(200, ["sent now"]).header("content-type", "text/plain"));
    }
    provider.answer(answer_of_text("Thank you."));
    let status = if answer.is_some() { "resolved" } else { "cancelled" };
    let resume = json!([{ "interruptId": question["id"], "status": status, "payload": answer }]);
    let mut input = ask_detached("answer", "go");
    (input["messages"], input["resume"]) = (json!([]), resume);
    let events = server.run(&input).await.rest().await;
    assert_eq!(events.last().unwrap().event["outcome"]["type"], "success", "{events:?}");
    let requests = provider.requests();
    let sent = requests.iter().filter(|it| it.path == "/send").count();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap();
    let result = messages.iter().find(|it| it["tool_call_id"] == "call_send").unwrap();
    (result["content"].as_str().unwrap().to_owned(), sent)
}

#[tokio::test]
async fn a_person_says_what_became_of_a_call_whose_server_was_lost() {
    let answers = [
        (Some(json!({ "outcome": "done", "result": "It is sent." })), "It is sent.", 1),
        (Some(json!({ "outcome": "done" })), "The user says that it took effect.", 1),
        (Some(json!({ "outcome": "not_done" })), "The user says that it did not take effect.", 1),
        (Some(json!({ "outcome": "repeat" })), "sent now", 2),
        (None, "Whether it took effect is unknown", 1),
    ];
    for (answer, expected, calls) in answers {
        let (result, sent) = result_after_answer(answer.clone()).await;
        assert!(result.contains(expected), "{answer:?}: {result}");
        assert_eq!(sent, calls, "{answer:?}");
    }
}

#[tokio::test]
async fn the_task_of_a_subagent_is_given_again_if_all_its_tools_are_safe() {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let url = provider.url();
    let config = config(&url).replace(
        r#"tools = ["read", "set", "send"]"#,
        r#"tools = ["agent:reader", "agent:sender"]"#,
    );
    let subagents = ["reader", "sender"].map(|name| {
        let tool = if name == "reader" { "read" } else { "send" };
        format!(
            "[agents.{name}]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"{url}\"\n\
             api_key_env = \"AGUI_KEY_CLERK\"\ndescription = \"Works\"\ntools = [\"{tool}\"]\n"
        )
    });
    let config = format!("default_agent = \"clerk\"\n{config}{}", subagents.concat());
    let server = start(folder.path(), &config);
    let calls = answer_of_calls(&["reader", "sender"])
        .to_string()
        .replace("{}", "{\\\"task\\\":\\\"work\\\"}");
    provider.answer(Answer::openai(&[serde_json::from_str(&calls).unwrap()]));
    provider.answer(half("I"));
    provider.answer(half("I"));
    let started = server.run(&ask_detached("r", "go")).await;
    poll_until("both have their tasks", async || (provider.requests().len() == 3).then_some(()))
        .await;
    server.kill();
    drop(started);
    provider.answer(answer_of_text("I have read."));
    provider.answer(answer_of_text("Read, but perhaps not sent."));
    let server = start(folder.path(), &config);
    let thread = server.until_status("finished").await;
    let results = thread["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "tool");
    let results: Vec<_> = results.map(|it| it["content"].as_str().unwrap()).collect();
    assert!(results.contains(&"I have read."), "{results:?}");
    assert!(
        results.iter().any(|it| it.contains("Whether it took effect is unknown")),
        "{results:?}"
    );
    assert_eq!(provider.requests().len(), 5);
}

#[tokio::test]
async fn a_run_whose_server_is_lost_four_times_is_given_up() {
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let config = config(&provider.url());
    let mut server = start(folder.path(), &config);
    provider.answer(half("one"));
    drop(server.run(&ask_detached("r", "go")).await.take(4).await);
    for attempt in 1..=3 {
        server.kill();
        server = start(folder.path(), &config);
        poll_until("the run is continued", async || {
            let mut followed = server.follow("r", 0).await;
            let mut count = 0;
            while count < attempt {
                count += usize::from(
                    followed.next().await?.event["name"] == "agui-server.run_continued",
                );
            }
            Some(())
        })
        .await;
    }
    server.kill();
    let server = start(folder.path(), &config);
    let thread = server.until_status("failed").await;
    assert_eq!(thread["runs"][0]["error"]["code"], "server_lost");
    provider.answer(answer_of_text("Hello."));
    server.run(&super::ask("next", "hello")).await.rest().await;
}

#[tokio::test]
async fn a_run_that_waits_to_continue_does_not_delay_a_shutdown() {
    let folder = tempdir().unwrap();
    let data = ("AGUI_SERVER__DATA_DIR", folder.path().to_str().unwrap());
    let start = || Replica::start(&[data, ("AGUI_SERVER__DRAIN_SECS", "0")]);
    let mut server = start();
    drop(server.run(&ask_detached("r", "count to 60")).await.take(5).await);
    // The second time, a run waits five seconds.
    for _ in 0..2 {
        server.kill();
        server = start();
        poll_until("the server has the run", async || {
            server.process.has_logged("continues here").then_some(())
        })
        .await;
    }
    let begin = Instant::now();
    terminate(server);
    assert!(begin.elapsed().as_secs() < 4, "{:?}", begin.elapsed());
    let server = start();
    server.until_status("finished").await;
    let log = server.follow("r", 0).await.rest().await;
    let causes: Vec<_> =
        continued(&log).iter().map(|value| value["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["server_lost", "server_lost", "handed_over"]);
}

#[tokio::test]
async fn another_server_continues_the_run_of_a_stopped_one_at_once() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("handed_over").await;
    let [a, b] = [(); 2]
        .map(|()| Replica::start(&[("AGUI_STORE__URL", &url), ("AGUI_SERVER__DRAIN_SECS", "0")]));
    let started = a.run(&ask_detached("r", "count to 100")).await;
    let mut followed = b.follow("r", 0).await;
    let mut seen = followed.take(10).await;
    let stopped = Instant::now();
    a.process.signal("-TERM");
    drop(started);
    while continued(&seen).is_empty() {
        seen.push(followed.next().await.unwrap());
    }
    println!("another server continues after {:?}", stopped.elapsed());
    // Without a signal the server would look for lost runs every five seconds.
    assert!(stopped.elapsed().as_secs() < 4, "{:?}", stopped.elapsed());
    seen.extend(followed.rest().await);
    assert_eq!(seen.last().unwrap().name(), "RUN_FINISHED");
    assert_eq!(continued(&seen), [&json!({ "attempt": 1, "cause": "handed_over" })]);
    let whole = counted(100);
    assert_eq!(folded(&seen), [&*whole]);
    assert_eq!(
        said(&b.until_status("finished").await),
        ["user: count to 100", &format!("assistant: {whole}")]
    );
    let (code, log) = a.process.ended();
    assert_eq!(code, Some(0), "{log}");
}

const RECONNECT_PAUSE: Duration = Duration::from_millis(100);

const FAIL_FIRST_ATTEMPT: &str = "
    CREATE SEQUENCE attempts;
    CREATE FUNCTION fail_first() RETURNS trigger AS $$ BEGIN
        IF nextval('attempts') = 1 THEN RAISE 'the first attempt fails'; END IF;
        RETURN NEW;
    END $$ LANGUAGE plpgsql;
    CREATE TRIGGER fail_first BEFORE INSERT ON agui_events FOR EACH ROW
        WHEN (NEW.body LIKE '%run_continued%') EXECUTE FUNCTION fail_first()";

#[tokio::test]
async fn a_run_that_could_not_continue_at_once_continues_with_the_next_attempt() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("second_attempt").await;
    let [a, b] = [(); 2]
        .map(|()| Replica::start(&[("AGUI_STORE__URL", &url), ("AGUI_SERVER__DRAIN_SECS", "0")]));
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(FAIL_FIRST_ATTEMPT).execute(&mut connection).await.unwrap();
    let mut started = a.run(&ask_detached("r", "count to 20")).await;
    started.take(5).await;
    drop(started);
    terminate(a);
    let log = b.follow("r", 0).await.rest().await;
    assert_eq!(log.last().unwrap().name(), "RUN_FINISHED", "{}", log.last().unwrap().event);
    assert_eq!(continued(&log).len(), 1);
    assert_eq!(folded(&log), [counted(20)]);
    b.process.signal("-TERM");
    let (_, log) = b.end();
    assert!(log.contains("a lost run could not be continued or closed"), "{log}");
}

/// Reads a chat through the proxy as a page does, which reconnects when its connection breaks. Returns all events.
async fn read_chat(proxy: &Endpoint, thread: &str) -> Vec<Received> {
    let mut input = ask_detached("r", "count to 150");
    input["threadId"] = thread.into();
    let (mut stream, mut seen) = (proxy.run(&input).await, Vec::<Received>::new());
    loop {
        match stream.next_or_cut().await {
            Ok(Some(event)) => seen.push(event),
            Ok(None) => return seen,
            Err(_) => {
                let last = seen.iter().rev().find_map(|event| event.number).unwrap_or(0);
                let path = format!("/threads/{thread}/runs/r/events?after={last}");
                let mut response = proxy.get(&path).await;
                while response.status() != 200 {
                    tokio::time::sleep(RECONNECT_PAUSE).await;
                    response = proxy.get(&path).await;
                }
                stream = Stream::of(response).await;
            }
        }
    }
}

/// Stops a server, and starts it again at its address.
pub(crate) async fn restarted(server: Replica, environment: &[(&str, &str)]) -> Replica {
    server.process.signal("-TERM");
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let (code, log) = tokio::task::spawn_blocking(|| server.end()).await.unwrap();
    assert_eq!(code, Some(0), "{log}");
    Replica::start_with(&["--listen", &address], environment)
}

/// `AGUI_TEST_CHATS=200`, with `--release`, is the measurement in docs/operations.md.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_chat_behind_nginx_is_lost_when_two_servers_are_restarted_one_after_the_other() {
    let chats = std::env::var("AGUI_TEST_CHATS").map_or(40, |text| text.parse().unwrap());
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("rolling").await;
    let environment = [
        ("AGUI_STORE__URL", &*url),
        ("AGUI_SERVER__DRAIN_SECS", "0"),
        ("AGUI_RUNS__MAX_DETACHED", "1000"),
        ("AGUI_RUNS__MAX_CONCURRENT", "1000"),
    ];
    let [a, b] = [(); 2].map(|()| Replica::start(&environment));
    let Some(proxy) = Proxy::nginx([&a, &b]).await else { return };
    let read = futures::future::join_all((0..chats).map(|chat| {
        let proxy = &proxy;
        async move { read_chat(proxy, &format!("t{chat}")).await }
    }));
    let restart = async {
        poll_until("all chats run", async || {
            let page = b.get("/threads?limit=200").await.json::<Value>().await.unwrap();
            let threads = page["threads"].as_array().unwrap();
            (threads.iter().filter(|it| it.get("activeRunId").is_some()).count() == chats)
                .then_some(())
        })
        .await;
        let a_stopped = Instant::now();
        let a = restarted(a, &environment).await;
        proxy.until_answered("/threads/t0", 200).await;
        let b_stopped = Instant::now();
        (a, restarted(b, &environment).await, [a_stopped, b_stopped])
    };
    let (all, (_a, _b, stopped)) = tokio::join!(read, restart);
    let mut waits = Vec::new();
    for events in &all {
        assert_eq!(events.last().unwrap().name(), "RUN_FINISHED");
        assert_eq!(folded(events), [counted(150)]);
        for continued in events.iter().filter(|it| it.event["name"] == "agui-server.run_continued")
        {
            let stop = stopped.iter().rfind(|stop| **stop <= continued.at).unwrap();
            waits.push(continued.at.duration_since(*stop));
        }
    }
    waits.sort_unstable();
    let [median, longest] = [waits.get(waits.len() / 2), waits.last()];
    println!(
        "{chats} chats, gone on {} times, after {median:?} (median), {longest:?} (longest)",
        waits.len()
    );
    assert!(!waits.is_empty());
}
