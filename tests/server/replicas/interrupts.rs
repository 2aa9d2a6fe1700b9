//! An interrupt that is raised on one server and answered on others.

use serde_json::{Value, json};

use super::{
    ask,
    client::{Received, Replica},
    replicas,
};

/// Starts a run that raises an interrupt. Returns the ids of the interrupt and of its tool call.
async fn asked(server: &Replica) -> (Value, Value) {
    let events = server.run(&ask("ask", "approve")).await.rest().await;
    let last = events.last().unwrap();
    assert_eq!(last.event["outcome"]["type"], "interrupt");
    let question = &last.event["outcome"]["interrupts"][0];
    (question["id"].clone(), question["toolCallId"].clone())
}

fn answer(run: &str, question: &Value, approved: bool) -> Value {
    json!({ "threadId": "t", "runId": run, "messages": [],
        "resume": [{ "interruptId": question, "status": "resolved", "payload": { "approved": approved } }] })
}

fn results<'a>(events: impl IntoIterator<Item = &'a Received>, call: &Value) -> usize {
    let is_result =
        |it: &&Received| it.name() == "TOOL_CALL_RESULT" && it.event["toolCallId"] == *call;
    events.into_iter().filter(is_result).count()
}

fn stored_results(thread: &Value, call: &Value) -> usize {
    let messages = thread["messages"].as_array().unwrap().iter();
    messages.filter(|message| message["role"] == "tool" && message["toolCallId"] == *call).count()
}

#[tokio::test]
async fn an_answer_on_another_server_takes_effect_once() {
    let Some([a, b]) = replicas("interrupt").await else { return };
    let (question, call) = asked(&a).await;
    assert_eq!(b.thread().await["interrupts"][0]["id"], question);
    let first = b.run(&answer("first", &question, true)).await.rest().await;
    assert_eq!((results(&first, &call), first.last().unwrap().name()), (1, "RUN_FINISHED"));
    assert_eq!(a.thread().await["interrupts"], json!([]));
    let again = a.run(&answer("again", &question, true)).await.rest().await;
    assert_eq!(results(&again, &call), 0, "{again:?}");
    println!("the same answer again ends with {}", again.last().unwrap().event);
    assert_eq!(stored_results(&b.thread().await, &call), 1);
}

#[tokio::test]
async fn one_of_concurrent_answers_on_all_servers_takes_effect() {
    let Some([a, b, c]) = replicas("answers").await else { return };
    let (question, call) = asked(&a).await;
    let answers = (0..9).map(|i| {
        let (server, input) =
            ([&a, &b, &c][i % 3], answer(&format!("answer{i}"), &question, i % 2 == 0));
        async move { server.run(&input).await.rest().await }
    });
    let answered = futures::future::join_all(answers).await;
    assert_eq!(results(answered.iter().flatten(), &call), 1);
    assert_eq!(stored_results(&b.thread().await, &call), 1);
    // All others, who answered otherwise, get the same decision.
    let told =
        answered.iter().flatten().filter(|it| it.event["name"] == "agui-server.already_answered");
    let mut decisions: Vec<_> =
        told.map(|it| it.event["value"]["answers"][0]["decision"].clone()).collect();
    assert!(decisions.len() >= 4, "{decisions:?}");
    decisions.dedup();
    assert_eq!(decisions.len(), 1, "{decisions:?}");
    let runs = b.thread().await["runs"].as_array().unwrap().len();
    assert_eq!(runs, 2, "only the answer that counts is a run");
}
