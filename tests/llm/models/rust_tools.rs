//! Tools written in Rust, in a run with a provider over a socket: they report progress, change the state, see their
//! request, and ask a person.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agui_server::{
    Server,
    agent::emit::state,
    auth::ApiKey,
    llm::LlmAgent,
    options::HttpOptions,
    protocol::PatchOperation,
    tools::{ApprovalRule, FnTool, Question, ToolError, tool_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    call, chat_model, only_interrupt,
    provider::{Answer, Provider},
    read_events, result,
    running::Running,
    says,
};

const SECRET: &str = "a-secret-of-ada";

#[derive(Deserialize, JsonSchema)]
struct Shirt {
    colour: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
enum Size {
    S,
    L,
}

/// A server with one agent, whose only tool is `tool`.
async fn serve(
    provider: &Provider,
    tool: FnTool,
    change: impl FnOnce(Server) -> Server,
) -> Running {
    let model = chat_model(provider);
    let agent = LlmAgent::new(model).tool(tool).prompt(|input, cx| {
        let name = cx.principal().map_or("a guest", |principal| principal.name());
        format!("You talk to {name} on {}.", input.thread_id)
    });
    Running::start(change(Server::new().agent("shop", agent))).await
}

/// The provider answers with a call of the tool `order`, with the id `c0`.
fn answer_with_call(provider: &Provider, arguments: &Value) {
    provider.answer(Answer::openai(&[call(0, "order", &arguments.to_string())]));
}

/// The next request on thread `t`, which answers the only interrupt of the run before.
fn resume(run: &str, interrupt: &Value, payload: Value) -> Value {
    let entry = json!({ "interruptId": interrupt["id"], "status": "resolved", "payload": payload });
    json!({ "threadId": "t", "runId": run, "messages": [], "resume": [entry] })
}

fn first_request() -> Value {
    let message = json!({ "id": "m", "role": "user", "content": "A shirt, please." });
    json!({ "threadId": "t", "runId": "r1", "messages": [message], "state": { "orders": 0 } })
}

/// Returns the events of a run, which are a legal stream.
async fn events(running: &Running, input: Value) -> Vec<Value> {
    let request = running.post("/send-message").bearer_auth(SECRET).header("x-tenant", "acme");
    let body = request.json(&input).send().await.unwrap().text().await.unwrap();
    read_events(input, &body)
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_tool_reports_progress_changes_the_state_sees_its_request_and_asks() {
    let provider = Provider::start().await;
    let orders = Arc::new(AtomicUsize::new(0));
    let counter = orders.clone();
    let order = tool_fn("order", "Orders a shirt.", move |args: Shirt, cx| {
        let counter = counter.clone();
        async move {
            cx.report_progress("Looking at the stock", 0.5).await?;
            let size: Size = cx.ask_for(Question::new("Which size?")).await?;
            let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
            cx.emit(state::delta([PatchOperation::replace("/orders", number)])).await?;
            let tenant = cx.header_values("x-tenant").next().unwrap_or_default().to_owned();
            let name =
                cx.principal().map(|principal| principal.name().to_owned()).unwrap_or_default();
            assert_eq!(cx.call_id().as_str(), "c0");
            Ok(
                json!({ "shirt": format!("{} {size:?}", args.colour), "state": *cx.state(), "for": [tenant, name] }),
            )
        }
    });
    let options =
        HttpOptions { pass_headers: vec!["X-Tenant".to_owned()], ..HttpOptions::default() };
    let running = serve(&provider, order, |server| {
        server.http_options(options).api_keys([ApiKey::from_secret("ada", SECRET)])
    })
    .await;
    answer_with_call(&provider, &json!({ "colour": "red" }));
    let asked = events(&running, first_request()).await;
    let interrupt = only_interrupt(&asked);
    assert_eq!(interrupt["message"], "Which size?");
    assert_eq!(
        (&interrupt["toolCallId"], &interrupt["responseSchema"]["enum"]),
        (&json!("c0"), &json!(["S", "L"]))
    );
    let progress = asked.iter().find(|event| event["type"] == "ACTIVITY_SNAPSHOT").unwrap();
    let content = json!({ "toolCallId": "c0", "toolName": "order", "message": "Looking at the stock", "fraction": 0.5 });
    assert_eq!(
        (&progress["activityType"], &progress["content"]),
        (&json!("agui-server.tool_progress"), &content)
    );
    assert_eq!(orders.load(Ordering::SeqCst), 0);

    says(&provider, "Done.");
    let answered = events(&running, resume("r2", &interrupt, json!("L"))).await;
    assert_eq!(
        result(&answered),
        json!({ "shirt": "red L", "state": { "orders": 1 }, "for": ["acme", "ada"] }).to_string()
    );
    let of_tool: Vec<_> =
        types(&answered).into_iter().filter(|kind| !kind.contains("SNAPSHOT")).take(4).collect();
    assert_eq!(of_tool, ["RUN_STARTED", "STATE_DELTA", "TOOL_CALL_RESULT", "STEP_STARTED"]);
    let requests = provider.requests();
    assert_eq!(requests[1].body["messages"][0]["content"], "You talk to ada on t.");
    assert!(
        requests[1].body["messages"].as_array().unwrap().last().unwrap()["content"]
            .to_string()
            .contains("red L")
    );

    // An answer of the wrong type never reaches the tool, and a repeated one does not order again.
    let repeated = events(&running, resume("r3", &interrupt, json!("L"))).await;
    assert_eq!(repeated.last().unwrap()["outcome"]["type"], "success");
    assert_eq!(orders.load(Ordering::SeqCst), 1);
}

/// Asks for a size and, once that is known, for a name; needs an approval.
fn order_with_two_questions() -> FnTool {
    let order = tool_fn("order", "Orders a shirt.", |args: Shirt, cx| async move {
        let size = cx.ask("Which size?").await?;
        let name = cx.ask(Question::new("Which name?").key("name")).await?;
        Ok(format!("{} {size} for {name}", args.colour))
    });
    order.needs_approval(ApprovalRule::Always)
}

#[tokio::test]
async fn an_approval_comes_before_the_questions_and_edited_arguments_stay_edited() {
    let provider = Provider::start().await;
    let running = serve(&provider, order_with_two_questions(), |server| server).await;
    answer_with_call(&provider, &json!({ "colour": "red" }));
    let approval = only_interrupt(&events(&running, first_request()).await);
    assert_eq!(approval["reason"], "tool_call");
    let edited = json!({ "approved": true, "editedArgs": { "colour": "blue" } });
    let size = only_interrupt(&events(&running, resume("r2", &approval, edited)).await);
    assert_eq!(
        (&size["reason"], &size["message"]),
        (&json!("input_required"), &json!("Which size?"))
    );
    let name = only_interrupt(&events(&running, resume("r3", &size, json!("L"))).await);
    assert_eq!(name["message"], "Which name?");
    says(&provider, "Done.");
    let done = events(&running, resume("r4", &name, json!("Ada"))).await;
    assert_eq!(result(&done), "blue \"L\" for \"Ada\"");
}

#[tokio::test]
async fn the_model_is_told_that_a_person_declined_to_answer() {
    let provider = Provider::start().await;
    let order =
        tool_fn(
            "order",
            "Orders a shirt.",
            |_: Shirt, cx| async move { cx.ask("Which size?").await },
        );
    let running = serve(&provider, order, |server| server).await;
    answer_with_call(&provider, &json!({ "colour": "red" }));
    let interrupt = only_interrupt(&events(&running, first_request()).await);
    says(&provider, "Then not.");
    let mut input = resume("r2", &interrupt, Value::Null);
    input["resume"][0]["status"] = json!("cancelled");
    let done = events(&running, input).await;
    assert_eq!(result(&done), "Error: the user declined to answer the question \"Which size?\"");
}

#[tokio::test]
async fn events_that_belong_to_the_server_and_changes_that_do_not_apply_are_refused() {
    let provider = Provider::start().await;
    let order = tool_fn("order", "Orders a shirt.", |_: Shirt, cx| async move {
        let patch = state::delta([PatchOperation::replace("/unknown/path", 1)]);
        let refused = cx.emit(patch).await.unwrap_err();
        assert!(refused.message().starts_with("the state delta does not apply"), "{refused:?}");
        let finish = agui_server::agent::emit::finish(cx.run(), "over");
        let refused = cx.emit(finish).await.unwrap_err();
        assert_eq!(refused.message(), "a tool cannot emit RUN_FINISHED: the server does");
        Err::<(), _>(ToolError::new("out of shirts"))
    });
    let running = serve(&provider, order, |server| server).await;
    answer_with_call(&provider, &json!({ "colour": "red" }));
    says(&provider, "Sorry.");
    let events = events(&running, first_request()).await;
    assert_eq!(result(&events), "Error: out of shirts");
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
}
