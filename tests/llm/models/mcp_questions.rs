//! An MCP server that asks a person during a call, over several runs of a thread. The server is made with the official
//! SDK (`tests/js/sdk-mcp.mjs`).

use std::sync::Arc;

use agui_server::{
    Server,
    llm::LlmAgent,
    tools::{
        Toolbox,
        mcp::{McpServer, McpServerOptions},
    },
};
use serde_json::{Value, json};

use super::{
    call, chat_model, only_interrupt,
    provider::{Answer, Provider},
    read_events, result,
    running::Running,
    says,
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/js/sdk-mcp.mjs");
const DAY: &str = r#"{"day":"Monday"}"#;

struct Trip {
    provider: Provider,
    server: Running,
    stored: bool,
    tool: &'static str,
    arguments: &'static str,
    runs: usize,
}

impl Trip {
    async fn start(stored: bool) -> Self {
        Self::calling("book", DAY, stored).await
    }

    async fn calling(tool: &'static str, arguments: &'static str, stored: bool) -> Self {
        let provider = Provider::start().await;
        let mcp = Arc::new(McpServer::new("trips", McpServerOptions::command(["node", SCRIPT, "stdio"])).unwrap());
        let model = chat_model(&provider);
        let server = Server::new().agent("trips", LlmAgent::new(model).tools(Toolbox::new().source(mcp)));
        let server = Running::start(if stored { server } else { server.stateless() }).await;
        provider.answer(Answer::openai(&[call(0, tool, arguments)]));
        Self { provider, server, stored, tool, arguments, runs: 0 }
    }

    async fn run(&mut self, resume: Value) -> Vec<Value> {
        self.runs += 1;
        let user = json!({ "id": "m", "role": "user", "content": "Book a trip." });
        let mut messages = vec![user];
        if self.runs > 1 && !self.stored {
            // A server without stored threads gets the conversation each time.
            let function = json!({ "name": self.tool, "arguments": self.arguments });
            let call = json!({ "id": "c0", "type": "function", "function": function });
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

#[tokio::test]
async fn questions_of_an_mcp_server_are_answered_in_later_runs_of_the_thread() {
    for stored in [true, false] {
        let mut trip = Trip::start(stored).await;
        let who = only_interrupt(&trip.run(json!([])).await);
        assert_eq!((&who["message"], &who["reason"]), (&json!("trips asks: Who travels?"), &json!("input_required")));
        assert_eq!((&who["toolCallId"], &who["metadata"]["agui-server.mcpServer"]), (&json!("c0"), &json!("trips")));
        assert_eq!(who["responseSchema"]["required"], json!(["name"]));
        // The second call meets the first question again, and gets the answer.
        let meal = only_interrupt(&trip.answer(&who, json!({ "name": "Ada" })).await);
        assert_eq!(meal["message"], "trips asks: Which meal for Ada?");
        says(&trip.provider, "Booked.");
        let done = trip.answer(&meal, json!({ "meal": "soup" })).await;
        assert_eq!(result(&done), "booking 1: Monday, Ada, soup", "stored: {stored}");
    }
}

#[tokio::test]
async fn an_mcp_server_is_told_that_a_person_declined() {
    let mut trip = Trip::start(true).await;
    let who = only_interrupt(&trip.run(json!([])).await);
    says(&trip.provider, "Then not.");
    let done = trip.run(json!([{ "interruptId": who["id"], "status": "cancelled" }])).await;
    assert_eq!(result(&done), "not booked: decline");
}

#[tokio::test]
async fn a_call_that_is_refused_until_pages_are_visited_is_made_again_after_each_visit() {
    for stored in [true, false] {
        let mut trip = Trip::calling("ledger", "{}", stored).await;
        let mut events = trip.run(json!([])).await;
        for url in ["https://example.com/visit/1", "https://example.com/visit/2"] {
            let page = only_interrupt(&events);
            assert_eq!(
                (&page["message"], &page["reason"]),
                (&json!("trips asks: Sign the ledger"), &json!("authorization"))
            );
            let metadata = &page["metadata"];
            assert_eq!(metadata["agui-server.visitUrl"], url);
            assert_eq!(metadata["agui-server.mcpServer"], "trips");
            says(&trip.provider, "Signed.");
            events = trip.answer(&page, json!({ "done": true })).await;
        }
        assert_eq!(result(&events), "the ledger is open", "stored: {stored}");

        let mut trip = Trip::calling("ledger", "{}", stored).await;
        let page = only_interrupt(&trip.run(json!([])).await);
        says(&trip.provider, "Then not.");
        let declined = trip.run(json!([{ "interruptId": page["id"], "status": "cancelled" }])).await;
        assert_eq!(result(&declined), "The call was not run: the user declined to log in or to open a page for it.");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_form_never_reaches_an_mcp_server() {
    let mut trip = Trip::start(true).await;
    let who = only_interrupt(&trip.run(json!([])).await);
    let refused = trip.answer(&who, json!({ "name": "" })).await;
    assert_eq!(refused.last().unwrap()["code"], "invalid_resume_payload");
    // A server without stored threads does not know the form until it is asked again.
    let mut trip = Trip::start(false).await;
    let who = only_interrupt(&trip.run(json!([])).await);
    says(&trip.provider, "Sorry.");
    let told = trip.answer(&who, json!({ "name": "" })).await;
    assert!(result(&told).starts_with("Error: The user's answer does not fit the form"), "{}", result(&told));
}

#[tokio::test]
async fn an_answer_is_not_for_another_mcp_server_whose_tool_has_the_name_now() {
    for approval in ["never", "always"] {
        let provider = Provider::start().await;
        let servers = async |names: &[&str]| {
            let source = |toolbox: Toolbox, name: &&str| {
                let mut options = McpServerOptions::command(["node", SCRIPT, "stdio"]);
                options.approval = serde_json::from_value(json!(approval)).unwrap();
                toolbox.source(Arc::new(McpServer::new(*name, options).unwrap()))
            };
            let agent = LlmAgent::new(chat_model(&provider)).tools(names.iter().fold(Toolbox::new(), source));
            Running::start(Server::new().agent("trips", agent).stateless()).await
        };
        let run = async |server: &Running, resume: Value| {
            let call = json!({ "id": "c0", "type": "function", "function": { "name": "book", "arguments": DAY } });
            let messages = json!([
                { "id": "m", "role": "user", "content": "Book a trip." },
                { "id": "a", "role": "assistant", "toolCalls": [call] },
            ]);
            let shown = &messages.as_array().unwrap()[..if resume == json!([]) { 1 } else { 2 }];
            let input = json!({ "threadId": "t", "runId": "r", "messages": shown, "resume": resume });
            read_events(input.clone(), &server.run(&input).await.text().await.unwrap())
        };
        provider.answer(Answer::openai(&[call(0, "book", DAY)]));
        let asked = only_interrupt(&run(&servers(&["trips"]).await, json!([])).await);
        let payload = json!({ "name": "Ada", "approved": true });
        let resume = json!([{ "interruptId": asked["id"], "status": "resolved", "payload": payload }]);
        // The tool of the first server of the list is offered.
        for (names, is_same) in [(["buses", "trips"], false), (["trips", "buses"], true)] {
            let server = servers(&names).await;
            says(&provider, "Well.");
            let events = run(&server, resume.clone()).await;
            let text =
                events.iter().find(|event| event["type"] == "TOOL_CALL_RESULT").map(|event| event["content"].clone());
            let is_refused = text == Some(json!("Error: there is no tool \"book\" any more"));
            assert_eq!(is_refused, !is_same, "{approval} {names:?}: {events:?}");
        }
    }
}
