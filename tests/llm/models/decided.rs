//! A decision about a call is final: two pages of one thread show the same question, one declines,
//! the other approves, or a person goes back to the message with the call.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use agui_server::{
    Server,
    llm::LlmAgent,
    store::{MemoryStore, PostgresStore, SqliteStore, Store},
    tools::{ApprovalRule, tool_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    chat_model, chunk,
    provider::{Answer, Provider},
    read_events, result,
    running::{Running, eventually},
    says, text_and_error,
};
use crate::support::postgres::Postgres;

#[derive(Deserialize, JsonSchema)]
struct Mail {
    to: String,
}

/// A server with a tool that has an effect and needs approval, and the tool's effects.
struct Office {
    server: Running,
    provider: Provider,
    sent: Arc<Mutex<Vec<String>>>,
    /// The messages of a page that shows the question, and the id of the interrupt.
    shown: Vec<Value>,
    interrupt: Value,
}

impl Office {
    /// A thread `t` whose run `r1` asks whether an e-mail is to be sent.
    async fn asking(store: Arc<dyn Store>) -> Self {
        Self::with_tool(store, Duration::ZERO).await
    }

    /// Like [`asking`](Self::asking), with a tool that takes this time after its effect.
    async fn with_tool(store: Arc<dyn Store>, takes: Duration) -> Self {
        let (provider, sent) = (Provider::start().await, Arc::<Mutex<Vec<String>>>::default());
        let sends = sent.clone();
        let tool = tool_fn("send_mail", "Sends an e-mail.", move |mail: Mail, _| {
            let sends = sends.clone();
            async move {
                sends.lock().unwrap().push(mail.to);
                tokio::time::sleep(takes).await;
                "It was sent."
            }
        });
        let agent =
            LlmAgent::new(chat_model(&provider)).tool(tool.needs_approval(ApprovalRule::Always));
        let server = Running::start(Server::new().agent("office", agent).store(store)).await;
        let arguments = json!({ "to": "ada@example.com" }).to_string();
        let piece = json!({ "index": 0, "id": "c", "function": { "name": "send_mail", "arguments": arguments } });
        provider.answer(Answer::openai(&[chunk(json!({ "tool_calls": [piece] }))]));
        let user = json!({ "id": "u", "role": "user", "content": "Send it." });
        let mut office = Self { server, provider, sent, shown: vec![user], interrupt: Value::Null };
        let asked = office.run(json!({ "runId": "r1", "messages": office.shown })).await;
        let call = asked.iter().find(|event| event["type"] == "TOOL_CALL_START").unwrap();
        let function = json!({ "name": "send_mail", "arguments": arguments });
        office.shown.push(json!({ "id": call["parentMessageId"], "role": "assistant",
            "toolCalls": [{ "id": "c", "type": "function", "function": function }] }));
        office.interrupt = asked.last().unwrap()["outcome"]["interrupts"][0]["id"].clone();
        assert!(office.interrupt.is_string());
        office
    }

    async fn run(&self, mut input: Value) -> Vec<Value> {
        input["threadId"] = json!("t");
        read_events(input.clone(), &self.server.run(&input).await.text().await.unwrap())
    }

    /// Answers as CopilotKit does: it adds a result with the answer to the messages of the page.
    async fn answer(&self, run: &str, approved: bool) -> Vec<Value> {
        let payload = json!({ "approved": approved });
        let copy = json!({ "id": format!("copy-{run}-{approved}"), "role": "tool", "toolCallId": "c",
            "content": payload.to_string() });
        let messages = [&self.shown[..], &[copy]].concat();
        let entry =
            json!({ "interruptId": self.interrupt, "status": "resolved", "payload": payload });
        self.run(json!({ "runId": run, "messages": messages, "resume": [entry] })).await
    }

    async fn say(&self, run: &str, messages: &[Value], parent: Option<&str>) -> Vec<Value> {
        says(&self.provider, "So be it.");
        let new = json!({ "id": format!("u-{run}"), "role": "user", "content": "And now?" });
        let mut input = json!({ "runId": run });
        input["messages"] = [messages, &[new]].concat().into();
        if let Some(parent) = parent {
            input["parentRunId"] = json!(parent);
        }
        self.run(input).await
    }

    fn sent(&self) -> usize {
        self.sent.lock().unwrap().len()
    }

    /// The results of the call on the current branch that runs made.
    async fn stored(&self) -> Value {
        let mut thread = self.server.thread("t").await;
        assert_eq!(thread["interrupts"], json!([]), "{thread}");
        thread["messages"].take()
    }
}

/// Requires a run that asks nothing, does nothing, and sends the page the state of the thread.
fn require_already_answered(events: &[Value], decision: &str, stored: &Value) {
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "CUSTOM", "RUN_FINISHED"]
    );
    assert_eq!(events[2]["messages"], *stored);
    assert_eq!(events[3]["name"], "agui-server.already_answered");
    assert_eq!(events[3]["value"]["answers"][0]["decision"], decision);
    assert_eq!(events[4]["outcome"], json!({ "type": "success" }));
}

async fn each_store(test: impl AsyncFn(Arc<dyn Store>)) {
    test(Arc::new(MemoryStore::new())).await;
    let folder = tempfile::tempdir().unwrap();
    test(Arc::new(SqliteStore::open(&folder.path().join("threads.db")).await.unwrap())).await;
    let Some(postgres) = Postgres::shared() else { return };
    test(Arc::new(PostgresStore::open(&postgres.database("decided").await).await.unwrap())).await;
}

#[tokio::test]
async fn a_declined_call_never_runs_whatever_another_page_answers() {
    for (declining, late) in [("r1", "r1"), ("r2", "r1"), ("r2", "r3"), ("r2", "r2")] {
        each_store(async |store| {
            let office = Office::asking(store).await;
            says(&office.provider, "Then not.");
            let declined = office.answer(declining, false).await;
            assert!(result(&declined).contains("declined"), "{declined:?}");
            let (stored, runs) =
                (office.stored().await, office.server.thread("t").await["runs"].clone());
            for _ in 0..2 {
                let events = office.answer(late, true).await;
                require_already_answered(&events, "declined", &stored);
                assert_eq!(office.sent(), 0);
                assert_eq!(office.stored().await, stored, "no branch begins");
                assert_eq!(office.server.thread("t").await["runs"], runs, "no run is recorded");
            }
            // The same answer again, as its response was lost, is harmless.
            let events = office.answer(declining, false).await;
            let types: Vec<_> =
                events.iter().map(|event| event["type"].as_str().unwrap()).collect();
            assert_eq!(
                types,
                ["RUN_STARTED", "STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
            );
            assert_eq!((office.stored().await, office.provider.requests().len()), (stored, 2));
        })
        .await;
    }
}

#[tokio::test]
async fn an_approved_call_runs_once_whatever_is_answered_later() {
    each_store(async |store| {
        let office = Office::asking(store).await;
        says(&office.provider, "Done.");
        office.answer("r1", true).await;
        let stored = office.stored().await;
        require_already_answered(&office.answer("r1", false).await, "approved", &stored);
        office.answer("r3", true).await;
        assert_eq!((office.sent(), office.stored().await), (1, stored));
    })
    .await;
}

#[tokio::test]
async fn a_person_who_goes_back_to_a_decided_call_is_not_asked_again() {
    for approved in [false, true] {
        each_store(async |store| {
            let office = Office::asking(store).await;
            says(&office.provider, "Noted.");
            office.answer("r2", approved).await;
            let done = office.sent();
            let shown = office.shown.clone();
            // The page has the call and not its result; the request names the run that asked.
            for (run, messages, parent) in
                [("r3", &shown[..], None), ("r4", &shown, Some("r1")), ("r5", &[], Some("r1"))]
            {
                let events = office.say(run, messages, parent).await;
                assert_eq!(text_and_error(&events), ("So be it.".to_owned(), None), "{run}");
                let request =
                    office.provider.requests().pop().unwrap().body["messages"].to_string();
                assert!(
                    request.contains(if approved { "It was sent." } else { "declined this call" }),
                    "{request}"
                );
                let late = office.answer(&format!("late-{run}"), !approved).await;
                require_already_answered(
                    &late,
                    if approved { "approved" } else { "declined" },
                    &office.stored().await,
                );
                assert_eq!(office.sent(), done, "{run}");
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_copy_of_a_thread_keeps_what_was_decided() {
    each_store(async |store| {
        let office = Office::asking(store).await;
        says(&office.provider, "Then not.");
        office.answer("r2", false).await;
        let fork = json!({ "threadId": "copy", "messageId": office.shown[1]["id"] });
        let response = office.server.post("/threads/t/fork").json(&fork).send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.text().await.unwrap());
        says(&office.provider, "So be it.");
        let entry = json!({ "interruptId": office.interrupt, "status": "resolved", "payload": { "approved": true } });
        let user = json!({ "id": "u2", "role": "user", "content": "And now?" });
        for (run, message, resume) in
            [("f1", json!([]), json!([entry])), ("f2", json!([user]), json!([])), ("f3", json!([]), json!([entry]))]
        {
            let input = json!({ "threadId": "copy", "runId": run, "messages": message, "resume": resume });
            let events = read_events(input.clone(), &office.server.run(&input).await.text().await.unwrap());
            assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "success" }), "{run}: {events:?}");
            assert_eq!(office.sent(), 0);
        }
        assert!(office.provider.requests().pop().unwrap().body["messages"].to_string().contains("declined this call"));
    })
    .await;
}

#[tokio::test]
async fn an_approved_call_whose_run_was_cancelled_is_not_asked_about_again() {
    each_store(async |store| {
        let office = Office::with_tool(store, Duration::from_secs(3600)).await;
        let cancelled = async {
            eventually("the e-mail is sent", || office.sent() == 1).await;
            office.server.post("/threads/t/runs/r2/cancel").send().await.unwrap();
        };
        tokio::join!(office.answer("r2", true), cancelled);
        let events = office.say("r3", &office.shown, None).await;
        assert_eq!(text_and_error(&events), ("So be it.".to_owned(), None));
        let request = office.provider.requests().pop().unwrap().body["messages"].to_string();
        assert!(request.contains("Its outcome is unknown"), "{request}");
        require_already_answered(
            &office.answer("r4", false).await,
            "approved",
            &office.stored().await,
        );
        assert_eq!(office.sent(), 1);
    })
    .await;
}
