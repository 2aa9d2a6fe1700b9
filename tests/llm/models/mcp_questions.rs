//! An MCP server that asks a person during a call, over several runs of a thread. The server is made with the official
//! SDK (`tests/js/sdk-mcp.mjs`).

use std::sync::Arc;

use agui_server::{
    Server,
    llm::LlmAgent,
    store::{MemoryStore, Store},
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
    runs: usize,
}

impl Trip {
    async fn start() -> Self {
        Self::calling("book", DAY).await
    }

    async fn calling(tool: &str, arguments: &str) -> Self {
        let provider = Provider::start().await;
        let mcp = Arc::new(
            McpServer::new("trips", McpServerOptions::command(["node", SCRIPT, "stdio"])).unwrap(),
        );
        let model = chat_model(&provider);
        let server =
            Server::new().agent("trips", LlmAgent::new(model).tools(Toolbox::new().source(mcp)));
        let server = Running::start(server).await;
        provider.answer(Answer::openai(&[call(0, tool, arguments)]));
        Self { provider, server, runs: 0 }
    }

    async fn run(&mut self, resume: Value) -> Vec<Value> {
        self.runs += 1;
        let user = json!({ "id": "m", "role": "user", "content": "Book a trip." });
        let run = format!("r{}", self.runs);
        let input = json!({ "threadId": "t", "runId": run, "messages": [user], "resume": resume });
        read_events(input.clone(), &self.server.run(&input).await.text().await.unwrap())
    }

    async fn answer(&mut self, interrupt: &Value, payload: Value) -> Vec<Value> {
        self.run(
            json!([{ "interruptId": interrupt["id"], "status": "resolved", "payload": payload }]),
        )
        .await
    }
}

#[tokio::test]
async fn questions_of_an_mcp_server_are_answered_in_later_runs_of_the_thread() {
    let mut trip = Trip::start().await;
    let who = only_interrupt(&trip.run(json!([])).await);
    assert_eq!(
        (&who["message"], &who["reason"]),
        (&json!("trips asks: Who travels?"), &json!("input_required"))
    );
    assert_eq!(
        (&who["toolCallId"], &who["metadata"]["agui-server.mcpServer"]),
        (&json!("c0"), &json!("trips"))
    );
    assert_eq!(who["responseSchema"]["required"], json!(["name"]));
    // The second call meets the first question again, and gets the answer.
    let meal = only_interrupt(&trip.answer(&who, json!({ "name": "Ada" })).await);
    assert_eq!(meal["message"], "trips asks: Which meal for Ada?");
    says(&trip.provider, "Booked.");
    let done = trip.answer(&meal, json!({ "meal": "soup" })).await;
    assert_eq!(result(&done), "booking 1: Monday, Ada, soup");
}

#[tokio::test]
async fn an_mcp_server_is_told_that_a_person_declined() {
    let mut trip = Trip::start().await;
    let who = only_interrupt(&trip.run(json!([])).await);
    says(&trip.provider, "Then not.");
    let done = trip.run(json!([{ "interruptId": who["id"], "status": "cancelled" }])).await;
    assert_eq!(result(&done), "not booked: decline");
}

#[tokio::test]
async fn a_call_that_is_refused_until_pages_are_visited_is_made_again_after_each_visit() {
    let mut trip = Trip::calling("ledger", "{}").await;
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
    assert_eq!(result(&events), "the ledger is open");

    let mut trip = Trip::calling("ledger", "{}").await;
    let page = only_interrupt(&trip.run(json!([])).await);
    says(&trip.provider, "Then not.");
    let declined = trip.run(json!([{ "interruptId": page["id"], "status": "cancelled" }])).await;
    assert_eq!(
        result(&declined),
        "The call was not run: the user declined to log in or to open a page for it."
    );
}

#[tokio::test]
async fn an_answer_that_does_not_fit_the_form_never_reaches_an_mcp_server() {
    let mut trip = Trip::start().await;
    let who = only_interrupt(&trip.run(json!([])).await);
    let refused = trip.answer(&who, json!({ "name": "" })).await;
    assert_eq!(refused.last().unwrap()["code"], "invalid_resume_payload");
}

#[tokio::test]
async fn an_answer_is_not_for_another_mcp_server_whose_tool_has_the_name_now() {
    for approval in ["never", "always"] {
        let provider = Provider::start().await;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let servers = async |names: &[&str]| {
            let source = |toolbox: Toolbox, name: &&str| {
                let mut options = McpServerOptions::command(["node", SCRIPT, "stdio"]);
                options.approval = serde_json::from_value(json!(approval)).unwrap();
                toolbox.source(Arc::new(McpServer::new(*name, options).unwrap()))
            };
            let agent = LlmAgent::new(chat_model(&provider))
                .tools(names.iter().fold(Toolbox::new(), source));
            Running::start(Server::new().agent("trips", agent).store(store.clone())).await
        };
        let run = async |server: &Running, input: Value| {
            read_events(input.clone(), &server.run(&input).await.text().await.unwrap())
        };
        let first = servers(&["trips"]).await;
        // The tool of the first server of the list is offered.
        for (thread, names, is_same) in
            [("a", ["buses", "trips"], false), ("b", ["trips", "buses"], true)]
        {
            provider.answer(Answer::openai(&[call(0, "book", DAY)]));
            let user = json!({ "id": "m", "role": "user", "content": "Book a trip." });
            let asked =
                run(&first, json!({ "threadId": thread, "runId": "r1", "messages": [user] })).await;
            let payload = json!({ "name": "Ada", "approved": true });
            let interrupt = &only_interrupt(&asked)["id"];
            let resume =
                json!([{ "interruptId": interrupt, "status": "resolved", "payload": payload }]);
            says(&provider, "Well.");
            let input =
                json!({ "threadId": thread, "runId": "r2", "messages": [], "resume": resume });
            let events = run(&servers(&names).await, input).await;
            let text = events
                .iter()
                .find(|event| event["type"] == "TOOL_CALL_RESULT")
                .map(|event| event["content"].clone());
            let is_refused = text == Some(json!("Error: there is no tool \"book\" any more"));
            assert_eq!(is_refused, !is_same, "{approval} {names:?}: {events:?}");
        }
    }
}
