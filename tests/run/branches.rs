//! The conversation that the agent gets when the client continues, edits, regenerates, goes back or repeats a request.

use std::sync::{Arc, Mutex};

use agui_server::{
    Server,
    agent::{
        Emitter, EventStream, RunContext, agent_fn,
        emit::{TextMessage, state},
        events as known,
    },
    protocol::{Interrupt, Message, RunAgentInput},
};
use serde_json::{Value, json};

use crate::{
    run::{ask, said, types},
    support::running::Running,
};

/// The texts of the conversation that the agent was given, one entry a run.
type Asked = Arc<Mutex<Vec<String>>>;

/// An agent that answers "a1", "a2", … and counts its runs in the state.
fn numbering() -> (impl Fn(RunAgentInput, RunContext) -> EventStream + Send + Sync + 'static, Asked)
{
    let asked = Asked::default();
    let runs = asked.clone();
    let agent = move |input: RunAgentInput, _: RunContext| {
        let texts = input.messages.iter().map(|message| match message {
            Message::Assistant(answer) => answer.content.as_deref().unwrap_or_default().to_owned(),
            other => serde_json::to_value(other).unwrap()["content"].as_str().unwrap().to_owned(),
        });
        let texts = texts.collect::<Vec<_>>().join(" ");
        let mut runs = runs.lock().unwrap();
        runs.push(texts);
        let answer = TextMessage::with_id(format!("a{}", runs.len()));
        let text = answer.delta(format!("a{}", runs.len()));
        known([state::snapshot(json!({ "runs": runs.len() })), answer.start(), text, answer.end()])
    };
    (agent, asked)
}

struct Client {
    server: Running,
    asked: Asked,
    /// The messages that the page shows.
    shows: Vec<Value>,
    runs: usize,
}

impl Client {
    async fn start() -> Self {
        let (agent, asked) = numbering();
        let server = Running::start(Server::new().agent("numbering", agent)).await;
        Self { server, asked, shows: Vec::new(), runs: 0 }
    }

    fn write(&mut self, id: &str, text: &str) {
        self.shows.push(json!({ "id": id, "role": "user", "content": text }));
    }

    /// Runs the agent with these messages. Returns the conversation that the agent was given, and the events.
    async fn send_only(
        &mut self,
        messages: &[Value],
        parent: Option<&str>,
    ) -> (String, Vec<Value>) {
        self.runs += 1;
        let mut input = ask("t", &format!("r{}", self.runs), "", "");
        input["messages"] = messages.to_vec().into();
        if let Some(parent) = parent {
            input["parentRunId"] = parent.into();
        }
        let events = self.server.events(&input).await;
        let answer = format!("a{}", self.runs);
        self.shows.push(json!({ "id": answer, "role": "assistant", "content": answer }));
        (self.asked.lock().unwrap().last().unwrap().clone(), events)
    }

    /// Runs the agent with all messages that the page shows.
    async fn send(&mut self) -> String {
        let shows = self.shows.clone();
        self.send_only(&shows, None).await.0
    }

    /// Writes two turns: one, a1, two, a2.
    async fn with_two_turns() -> Self {
        let mut client = Self::start().await;
        client.write("m1", "one");
        client.send().await;
        client.write("m2", "two");
        assert_eq!(client.send().await, "one a1 two");
        client
    }
}

#[tokio::test]
async fn a_regenerated_answer_replaces_the_old_one() {
    let mut client = Client::with_two_turns().await;
    client.shows.pop();
    assert_eq!(client.send().await, "one a1 two");
    client.write("m3", "three");
    assert_eq!(client.send().await, "one a1 two a3 three");
    let thread = client.server.thread("t").await;
    let texts = [
        "user: one",
        "assistant: a1",
        "user: two",
        "assistant: a3",
        "user: three",
        "assistant: a4",
    ];
    assert_eq!(said(&thread), texts);
}

#[tokio::test]
async fn an_edited_message_replaces_everything_after_it() {
    // A client may give the edited message its old id or a new one.
    for id in ["m2", "m2-edited"] {
        let mut client = Client::with_two_turns().await;
        client.write("m3", "three");
        client.send().await;
        client.shows.truncate(2);
        client.write(id, "two, but better");
        assert_eq!(client.send().await, "one a1 two, but better", "{id}");
        client.write("m4", "four");
        assert_eq!(client.send().await, "one a1 two, but better a4 four", "{id}");
    }
}

#[tokio::test]
async fn the_first_message_can_be_edited() {
    let mut client = Client::with_two_turns().await;
    client.shows.clear();
    client.write("m1", "one, but better");
    assert_eq!(client.send().await, "one, but better");
}

#[tokio::test]
async fn a_client_can_go_back_two_turns() {
    let mut client = Client::with_two_turns().await;
    client.write("m3", "three");
    client.send().await;
    client.shows.truncate(2);
    client.write("m4", "another two");
    assert_eq!(client.send().await, "one a1 another two");
}

#[tokio::test]
async fn a_client_that_returns_to_a_branch_continues_it() {
    let mut client = Client::with_two_turns().await;
    let left = client.shows.clone();
    client.shows.truncate(2);
    client.write("m3", "instead");
    client.send().await;
    client.shows = left;
    client.write("m4", "on");
    assert_eq!(client.send().await, "one a1 two a2 on");
}

#[tokio::test]
async fn a_repeated_request_gets_another_answer() {
    let mut client = Client::with_two_turns().await;
    client.shows.pop();
    let request = client.shows.clone();
    for _ in 0..3 {
        assert_eq!(client.send_only(&request, None).await.0, "one a1 two");
    }
}

#[tokio::test]
async fn a_client_that_sends_only_new_messages_receives_the_thread() {
    let mut client = Client::with_two_turns().await;
    client.write("m3", "three");
    let newest = client.shows.last().cloned().unwrap();
    let (asked, events) = client.send_only(&[newest], None).await;
    assert_eq!(asked, "one a1 two a2 three");
    assert_eq!(
        types(&events)[..4],
        ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "MESSAGES_SNAPSHOT"]
    );
    // A client would keep its new message in front of the others.
    assert_eq!(events[2]["messages"], json!([]));
    assert_eq!(
        said(&events[3]),
        ["user: one", "assistant: a1", "user: two", "assistant: a2", "user: three"]
    );
}

#[tokio::test]
async fn messages_that_a_client_trims_are_kept() {
    let mut client = Client::with_two_turns().await;
    client.write("m3", "three");
    let last = client.shows[2..].to_vec();
    let (asked, events) = client.send_only(&last, None).await;
    assert_eq!(asked, "one a1 two a2 three");
    assert!(!types(&events).contains(&"MESSAGES_SNAPSHOT"));
}

#[tokio::test]
async fn a_stale_second_tab_continues_what_it_shows() {
    let mut client = Client::with_two_turns().await;
    let tab = client.shows[..2].to_vec();
    let new = json!({ "id": "m9", "role": "user", "content": "from the other tab" });
    let (asked, _) = client.send_only(&[&tab[..], &[new]].concat(), None).await;
    assert_eq!(asked, "one a1 from the other tab");
}

#[tokio::test]
async fn a_parent_run_sets_the_branch_and_the_state() {
    let mut client = Client::with_two_turns().await;
    client.write("m3", "three");
    let newest = client.shows.last().cloned().unwrap();
    let (asked, events) = client.send_only(std::slice::from_ref(&newest), Some("r1")).await;
    assert_eq!(asked, "one a1 three");
    assert_eq!(events[0]["parentRunId"], "r1");
    assert_eq!(events[1]["snapshot"], json!({ "runs": 1 }), "the state that the run has left");
    assert_eq!(events[3]["messages"].as_array().unwrap().len(), 3);

    // An unknown one is echoed, and the current branch is used.
    let (asked, events) = client
        .send_only(&[json!({ "id": "m4", "role": "user", "content": "four" })], Some("?"))
        .await;
    assert_eq!(asked, "one a1 three a3 four");
    assert_eq!(events[0]["parentRunId"], "?");
}

#[tokio::test]
async fn an_undelivered_answer_stays_in_the_conversation() {
    let (agent, strings, _) = crate::run::puppet();
    let server = Running::start(Server::new().agent("puppet", agent)).await;
    let mut stream = server.raw_run(&ask("t", "r1", "m1", "one")).await;
    strings.send("half".to_owned()).unwrap();
    crate::run::read_until(&mut stream, |text| text.contains("half")).await;
    drop(stream);
    server.until_status("t", "cancelled").await;
    // The page shows its question alone, and asks another one.
    let mut input = ask("t", "r2", "m1", "one");
    input["messages"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "m2", "role": "user", "content": "two" }));
    strings.send("end".to_owned()).unwrap();
    let events = server.events(&input).await;
    assert_eq!(types(&events)[..3], ["RUN_STARTED", "MESSAGES_SNAPSHOT", "MESSAGES_SNAPSHOT"]);
    assert_eq!(said(&events[2]), ["user: one", "assistant: half", "user: two"]);
}

#[tokio::test]
async fn an_interrupt_is_open_only_on_its_branch() {
    let asking = |input: RunAgentInput, cx: RunContext| {
        let last = serde_json::to_value(input.messages.last()).unwrap();
        let mut events = TextMessage::whole("Well.");
        if last["content"] == "ask me" {
            events.push(agui_server::agent::emit::interrupt(
                &cx,
                vec![agui_server::protocol::Interrupt::new("input")],
            ));
        }
        known(events)
    };
    let server = Running::start(Server::new().agent("asking", asking)).await;
    let first = server.events(&ask("t", "r1", "m1", "hello")).await;
    let answer = json!({ "id": first[1]["messageId"], "role": "assistant", "content": "Well." });
    let with = |run: &str, id: &str, text: &str| {
        let mut input = ask("t", run, id, text);
        let all = input["messages"].as_array_mut().unwrap();
        all.splice(
            0..0,
            [json!({ "id": "m1", "role": "user", "content": "hello" }), answer.clone()],
        );
        input
    };
    let asked = server.events(&with("r2", "m2", "ask me")).await;
    assert_eq!(asked.last().unwrap()["outcome"]["type"], "interrupt");
    // The page edits the question away: the agent is free to answer.
    let edited = server.events(&with("r3", "m3", "never mind")).await;
    assert_eq!(edited.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(server.thread("t").await["interrupts"], json!([]));
    // The page returns to the branch of the interrupt, which is still open.
    let back = server.events(&with("r4", "m2", "ask me")).await;
    assert_eq!(back.last().unwrap()["outcome"]["type"], "interrupt");
}

#[tokio::test]
async fn the_newest_run_is_a_parent_also_after_the_return_to_another_branch() {
    let mut client = Client::with_two_turns().await;
    let mut edited = client.shows[..2].to_vec();
    edited.push(json!({ "id": "m3", "role": "user", "content": "edited" }));
    assert_eq!(client.send_only(&edited, None).await.0, "one a1 edited");
    let server = &client.server;
    server
        .client
        .patch(server.url("/threads/t"))
        .json(&json!({ "head": "a2" }))
        .send()
        .await
        .unwrap();
    assert_eq!(said(&client.server.thread("t").await).last().unwrap(), "assistant: a2");
    let question = json!({ "id": "m4", "role": "user", "content": "more" });
    assert_eq!(client.send_only(&[question], Some("r3")).await.0, "one a1 edited a3 more");
}

#[tokio::test]
async fn a_page_gets_the_run_that_asked_on_the_current_branch() {
    let asks = |input: RunAgentInput, out: Emitter| async move {
        match input.last_user_text().as_deref() {
            Some("ask") => out.interrupt([Interrupt::new("confirmation")]).await,
            _ => out.text("done").await,
        }
    };
    let server = Running::start(Server::new().agent("asks", agent_fn(asks))).await;
    server.events(&ask("t", "r1", "m1", "hello")).await;
    let known = server.thread("t").await["messages"].clone();
    for (run, message, text) in [("r2", "m2", "ask"), ("r3", "m3", "other")] {
        let mut input = ask("t", run, message, text);
        input["messages"] = json!([known[0], known[1], input["messages"][0]]);
        server.events(&input).await;
    }
    let page = async || {
        server.get("/send-message?threadId=t").await.json::<Value>().await.unwrap()["interrupts"]
            .clone()
    };
    assert_eq!(page().await, Value::Null);
    server
        .client
        .patch(server.url("/threads/t"))
        .json(&json!({ "head": "m2" }))
        .send()
        .await
        .unwrap();
    let open = page().await;
    assert_eq!((&open["runId"], open["pending"].as_array().unwrap().len()), (&json!("r2"), 1));
}
