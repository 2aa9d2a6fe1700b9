//! An MCP server that asks a person during a call, over several runs of a thread. The server is made with the official
//! SDK (`tests/js/sdk-mcp.mjs`).

use std::sync::Arc;

use agui_server::{
    Server,
    llm::{Connection, LlmAgent, ModelOptions, OpenAiChat},
    tools::{
        Toolbox,
        mcp::{McpServer, McpServerOptions},
    },
};
use serde_json::{Value, json};

use super::{
    chunk,
    provider::{Answer, Provider},
    read_events,
    running::Running,
};

const DAY: &str = r#"{"day":"Monday"}"#;

struct Trip {
    provider: Provider,
    server: Running,
    stored: bool,
    runs: usize,
}

impl Trip {
    async fn start(stored: bool) -> Self {
        let provider = Provider::start().await;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/js/sdk-mcp.mjs");
        let mcp = Arc::new(McpServer::new("trips", McpServerOptions::command(["node", script, "stdio"])).unwrap());
        let connection = Connection { base_url: Some(format!("{}/v1", provider.url())), ..Connection::default() };
        let model = OpenAiChat::new(ModelOptions::new("m", connection)).unwrap();
        let server = Server::new().agent("trips", LlmAgent::new(model).tools(Toolbox::new().source(mcp)));
        let server = Running::start(if stored { server } else { server.stateless() }).await;
        let piece = json!({ "index": 0, "id": "c", "function": { "name": "book", "arguments": DAY } });
        provider.answer(Answer::openai(&[chunk(json!({ "tool_calls": [piece] }))]));
        Self { provider, server, stored, runs: 0 }
    }

    async fn run(&mut self, resume: Value) -> Vec<Value> {
        self.runs += 1;
        let user = json!({ "id": "m", "role": "user", "content": "Book a trip." });
        let mut messages = vec![user];
        if self.runs > 1 && !self.stored {
            // A server without stored threads gets the conversation each time.
            let function = json!({ "name": "book", "arguments": DAY });
            let call = json!({ "id": "c", "type": "function", "function": function });
            messages.push(json!({ "id": "a", "role": "assistant", "toolCalls": [call] }));
        }
        let run = format!("r{}", self.runs);
        let input = json!({ "threadId": "t", "runId": run, "messages": messages, "resume": resume });
        read_events(input.clone(), &self.server.run(&input).await.text().await.unwrap())
    }

    async fn answer(&mut self, interrupt: &Value, payload: Value) -> Vec<Value> {
        self.run(json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": payload }])).await
    }
}

fn interrupt(events: &[Value]) -> Value {
    let interrupts = events.last().unwrap()["outcome"]["interrupts"].as_array().unwrap();
    assert_eq!(interrupts.len(), 1, "{interrupts:?}");
    interrupts[0].clone()
}

fn result(events: &[Value]) -> &str {
    let result = events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").unwrap();
    result["content"].as_str().unwrap()
}

#[tokio::test]
async fn questions_of_an_mcp_server_are_answered_in_later_runs_of_the_thread() {
    for stored in [true, false] {
        let mut trip = Trip::start(stored).await;
        let who = interrupt(&trip.run(json!([])).await);
        assert_eq!((&who["message"], &who["reason"]), (&json!("Who travels?"), &json!("input_required")));
        assert_eq!((&who["toolCallId"], &who["metadata"]["mcpServer"]), (&json!("c"), &json!("trips")));
        assert_eq!(who["responseSchema"]["required"], json!(["name"]));
        // The second call meets the first question again, and gets the answer.
        let meal = interrupt(&trip.answer(&who, json!({ "name": "Ada" })).await);
        assert_eq!(meal["message"], "Which meal for Ada?");
        trip.provider.answer(Answer::openai(&[chunk(json!({ "content": "Booked." }))]));
        let done = trip.answer(&meal, json!({ "meal": "soup" })).await;
        assert_eq!(result(&done), "booking 1: Monday, Ada, soup", "stored: {stored}");
    }
}

#[tokio::test]
async fn an_mcp_server_is_told_that_a_person_declined() {
    let mut trip = Trip::start(true).await;
    let who = interrupt(&trip.run(json!([])).await);
    trip.provider.answer(Answer::openai(&[chunk(json!({ "content": "Then not." }))]));
    let done = trip.run(json!([{ "interruptId": who["id"], "status": "cancelled" }])).await;
    assert_eq!(result(&done), "not booked: decline");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_form_never_reaches_an_mcp_server() {
    let mut trip = Trip::start(true).await;
    let who = interrupt(&trip.run(json!([])).await);
    let refused = trip.answer(&who, json!({ "name": "" })).await;
    assert_eq!(refused.last().unwrap()["code"], "invalid_resume_payload");
    // A server without stored threads does not know the form until it is asked again.
    let mut trip = Trip::start(false).await;
    let who = interrupt(&trip.run(json!([])).await);
    trip.provider.answer(Answer::openai(&[chunk(json!({ "content": "Sorry." }))]));
    let told = trip.answer(&who, json!({ "name": "" })).await;
    assert!(result(&told).starts_with("Error: The user's answer does not fit the form"), "{}", result(&told));
}
