//! The agent's input and the client's first events, for each case of the table in
//! docs/architecture.md ("The conversation is a tree"): in a response, and detached. The id of each
//! message is its text.

use std::sync::{Arc, Mutex};

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        emit::{TextMessage, state},
        event_stream, events as known,
    },
    protocol::RunAgentInput,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    run::{ask, changed_options, read_until, types},
    support::running::Running,
};

/// The case, the messages that the client shows, the messages that the agent gets, and the number
/// of snapshots. The thread has the messages m1, a1, m2, a2.
const CASES: &[(&str, &[&str], &str, usize)] = &[
    ("continues", &["m1", "a1", "m2", "a2", "m3"], "m1 a1 m2 a2 m3", 0),
    ("continues, with a trimmed list", &["a2", "m3"], "m1 a1 m2 a2 m3", 0),
    // The first of two snapshots has no messages: the client would keep its own in front. tests/js/order.test.mjs has all roles.
    ("no known message", &["m3"], "m1 a1 m2 a2 m3", 2),
    ("branches: another message", &["m1", "a1", "m3"], "m1 a1 m3", 0),
    ("branches: another answer", &["m1", "a1", "m2"], "m1 a1 m2", 0),
    ("branches: a step back", &["m1"], "m1", 0),
];
/// The same for a client that has not received a2 to its end.
const CASES_AFTER_A_CUT: &[(&str, &[&str], &str, usize)] = &[
    ("unseen", &["m1", "a1", "m2", "m3"], "m1 a1 m2 a2 m3", 2),
    ("unseen, with a trimmed list", &["m2", "m3"], "m1 a1 m2 a2 m3", 2),
    ("no known message", &["m3"], "m1 a1 m2 a2 m3", 2),
    ("continues: a part was received", &["m1", "a1", "m2", "a2", "m3"], "m1 a1 m2 a2 m3", 0),
    ("branches: a step back behind seen messages", &["m1", "m3"], "m1 m3", 0),
];

struct Conversations {
    server: Running,
    /// The messages of each run of the agent.
    asked: Arc<Mutex<Vec<String>>>,
    /// Lets an answer that is cut end.
    end: Arc<Semaphore>,
}

impl Conversations {
    async fn start(sync_messages: bool) -> Self {
        let (asked, end) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Semaphore::new(0)));
        let (asks, ends) = (asked.clone(), end.clone());
        let agent = move |input: RunAgentInput, _: RunContext| -> EventStream {
            let ids: Vec<_> =
                input.messages.iter().map(|message| message.id().as_str().to_owned()).collect();
            asks.lock().unwrap().push(ids.join(" "));
            // The answer of run r1 is a1.
            let id = input.run_id.as_str().replace('r', "a");
            let (message, ends, is_cut) =
                (TextMessage::with_id(id.clone()), ends.clone(), input.state.is_some());
            event_stream(async_stream::try_stream! {
                yield message.start();
                yield message.delta(id);
                if is_cut {
                    ends.acquire().await.unwrap().forget();
                }
                yield message.end();
            })
        };
        let options = changed_options(|options| options.sync_messages = sync_messages);
        let server =
            Running::start(Server::new().agent("numbered", agent).thread_options(options)).await;
        Self { server, asked, end }
    }

    fn input(thread: &str, run: &str, shown: &[&str], detached: bool) -> Value {
        let mut input = ask(thread, run, "", "");
        let message = |id: &&str| {
            let role = if id.starts_with('m') { "user" } else { "assistant" };
            json!({ "id": id, "role": role, "content": id })
        };
        input["messages"] = shown.iter().map(message).collect();
        if detached {
            input["forwardedProps"] = json!({ "onDisconnect": "continue" });
        }
        input
    }

    /// Runs a1 and a2 on a new thread. If `is_cut`, the client leaves during a2.
    async fn begin(&self, thread: &str, detached: bool, is_cut: bool) {
        self.server.events(&Self::input(thread, "r1", &["m1"], detached)).await;
        let mut second = Self::input(thread, "r2", &["m1", "a1", "m2"], detached);
        if !is_cut {
            self.server.events(&second).await;
            return;
        }
        // Any state: the agent then waits.
        second["state"] = json!(true);
        let mut stream = self.server.raw_run(&second).await;
        read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_CONTENT")).await;
        drop(stream);
        if detached {
            self.end.add_permits(1);
        }
        self.server.until_status(thread, if detached { "finished" } else { "cancelled" }).await;
    }
}

#[tokio::test]
async fn each_case_gives_agent_and_client_the_messages_that_they_lack() {
    for sync_messages in [true, false] {
        let all = Conversations::start(sync_messages).await;
        let cases = CASES
            .iter()
            .map(|case| (case, false))
            .chain(CASES_AFTER_A_CUT.iter().map(|case| (case, true)));
        for (n, ((case, shown, gets, snapshots), is_cut)) in cases.enumerate() {
            for detached in [false, true] {
                let (thread, what) = (
                    format!("{n} {detached}"),
                    format!("{case}, cut: {is_cut}, detached: {detached}"),
                );
                all.begin(&thread, detached, is_cut).await;
                let mut input = Conversations::input(&thread, "r3", shown, detached);
                // The state of the cut run would have the agent wait.
                if is_cut {
                    input["state"] = Value::Null;
                    all.end.add_permits(1);
                }
                let events = all.server.events(&input).await;
                assert_eq!(all.asked.lock().unwrap().last().unwrap(), gets, "{what}");
                let first: Vec<_> = events
                    .iter()
                    .take_while(|event| event["type"] != "TEXT_MESSAGE_START")
                    .collect();
                let sent: Vec<_> =
                    first.iter().filter(|event| event["type"] == "MESSAGES_SNAPSHOT").collect();
                let expected = if sync_messages { *snapshots } else { 0 };
                assert_eq!(sent.len(), expected, "{what}: {:?}", types(&events));
                if let Some(last) = sent.last() {
                    let ids: Vec<_> = last["messages"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|it| it["id"].as_str().unwrap())
                        .collect();
                    assert_eq!(ids.join(" "), *gets, "{what}");
                }
                if sent.len() == 2 {
                    assert_eq!(sent[0]["messages"], json!([]), "{what}");
                }
                let stored = all.server.thread(&thread).await;
                let ids: Vec<_> = stored["messages"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|it| it["id"].as_str().unwrap())
                    .collect();
                assert_eq!(ids.join(" "), format!("{gets} a3"), "{what}");
            }
        }
    }
}

/// Pages of some other servers read a stored thread by such a run, with `state: {}`.
#[tokio::test]
async fn a_request_without_anything_to_answer_gets_the_thread_and_does_not_call_the_agent() {
    let all = Conversations::start(true).await;
    let mut nothing = Conversations::input("t", "r1", &[], false);
    // A thread without messages has nothing to show, and an agent may speak first.
    all.server.events(&nothing).await;
    assert_eq!(*all.asked.lock().unwrap(), [""]);
    all.begin("t2", false, false).await;
    let asked = all.asked.lock().unwrap().len();
    nothing["threadId"] = "t2".into();
    nothing["runId"] = "r3".into();
    for state in [None, Some(Value::Null), Some(json!({}))] {
        nothing.as_object_mut().unwrap().remove("state");
        nothing["forwardedProps"] = json!({});
        if let Some(state) = state {
            nothing["state"] = state;
        }
        let events = all.server.events(&nothing).await;
        assert_eq!(
            types(&events),
            ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
        );
        assert_eq!(events[0]["runId"], "r3");
        let ids: Vec<_> = events[1]["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["id"].as_str().unwrap())
            .collect();
        assert_eq!(ids, ["m1", "a1", "m2", "a2"]);
    }
    assert_eq!(all.asked.lock().unwrap().len(), asked);
    // Each of these inputs asks for something.
    for (run, member, value) in
        [("r4", "state", json!({ "a": 1 })), ("r5", "forwardedProps", json!({ "go": "on" }))]
    {
        let mut something = nothing.clone();
        something["runId"] = run.into();
        something[member] = value;
        all.end.add_permits(1);
        all.server.events(&something).await;
    }
    assert_eq!(all.asked.lock().unwrap().len(), asked + 2);
    assert_eq!(all.server.thread("t2").await["runs"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_new_thread_is_what_the_client_shows() {
    let all = Conversations::start(true).await;
    for detached in [false, true] {
        let input =
            Conversations::input(&format!("{detached}"), "r1", &["m1", "a0", "m2"], detached);
        let types = all.server.events(&input).await;
        assert_eq!(crate::run::types(&types)[..2], ["RUN_STARTED", "TEXT_MESSAGE_START"]);
        assert_eq!(all.asked.lock().unwrap().last().unwrap(), "m1 a0 m2");
    }
}

#[tokio::test]
async fn an_empty_state_replaces_the_stored_one_only_if_the_client_shows_a_stored_message() {
    let agent = |input: RunAgentInput, _: RunContext| {
        let first =
            (input.messages.len() == 1).then(|| state::snapshot(json!({ "theme": "dark" })));
        known(first.into_iter().chain(TextMessage::whole("ok")).collect::<Vec<_>>())
    };
    let server = Running::start(Server::new().agent("themed", agent)).await;
    let with_empty_state = |run: &str, message: &str| {
        let mut input = ask("t", run, message, message);
        input["state"] = json!({});
        input
    };
    server.events(&with_empty_state("r1", "m1")).await;
    // SDKs send an empty state for a thread of which they have nothing.
    let events = server.events(&with_empty_state("r2", "m2")).await;
    assert_eq!(
        (&events[1]["type"], &events[1]["snapshot"]),
        (&json!("STATE_SNAPSHOT"), &json!({ "theme": "dark" }))
    );
    let thread = server.thread("t").await;
    assert_eq!(thread["state"], json!({ "theme": "dark" }));
    let mut cleared = with_empty_state("r3", "m3");
    let mut shown = thread["messages"].as_array().unwrap().clone();
    shown.extend(cleared["messages"].as_array().unwrap().clone());
    cleared["messages"] = shown.into();
    assert!(!types(&server.events(&cleared).await).contains(&"STATE_SNAPSHOT"));
    assert_eq!(server.thread("t").await["state"], json!({}));
}
