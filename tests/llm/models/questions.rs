//! The built-in tools by which a model asks the person: `ask_user` with a schema of its own, and `propose_plan`.

use serde_json::{Value, json};

use super::{
    Models, ask, call, only_interrupt,
    provider::{Answer, Provider},
    result, says, text_and_error,
};

const TOOLS: &str = "tools = [\"ask_user\", \"propose_plan\"]\n";

/// Starts a run on a new thread in which the model calls the tool, and returns the thread and the interrupt.
async fn asked(
    models: &Models,
    provider: &Provider,
    tool: &str,
    arguments: &Value,
) -> (String, Value) {
    provider.answer(Answer::openai(&[call(0, tool, &arguments.to_string())]));
    let thread = uuid::Uuid::new_v4().to_string();
    let message = json!({ "id": "m", "role": "user", "content": "Go on." });
    let events =
        send(models, json!({ "threadId": thread, "runId": "r1", "messages": [message] })).await;
    (thread, only_interrupt(&events))
}

async fn answer(models: &Models, thread: &str, interrupt: &Value, payload: Value) -> Vec<Value> {
    let entry = json!({ "interruptId": interrupt["id"], "status": "resolved", "payload": payload });
    let run = uuid::Uuid::new_v4().to_string();
    send(models, json!({ "threadId": thread, "runId": run, "messages": [], "resume": [entry] }))
        .await
}

async fn send(models: &Models, input: Value) -> Vec<Value> {
    ask(&models.process.url, input).await
}

#[tokio::test]
async fn the_model_asks_with_a_schema_and_gets_the_checked_answer() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, TOOLS);
    let size = json!({ "type": "string", "enum": ["S", "L"] });
    let schema = json!({ "type": "object", "properties": { "size": size }, "required": ["size"] });
    let question = json!({ "question": "Which size?", "schema": schema });
    let (thread, interrupt) = asked(&models, &provider, "ask_user", &question).await;
    assert_eq!(
        (&interrupt["message"], &interrupt["reason"]),
        (&json!("Which size?"), &json!("input_required"))
    );
    assert_eq!((&interrupt["responseSchema"], &interrupt["toolCallId"]), (&schema, &json!("c0")));

    let refused = answer(&models, &thread, &interrupt, json!({ "size": "XL" })).await;
    assert_eq!(refused.last().unwrap()["code"], "invalid_resume_payload");
    assert_eq!(
        provider.requests().len(),
        1,
        "the model is not asked before there is a valid answer"
    );

    says(&provider, "Ordered.");
    let done = answer(&models, &thread, &interrupt, json!({ "size": "L" })).await;
    assert_eq!(
        (result(&done), text_and_error(&done)),
        (r#"{"size":"L"}"#, ("Ordered.".to_owned(), None))
    );
    let request = provider.requests().pop().unwrap();
    let last = request.body["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["role"], &last["content"]), (&json!("tool"), &json!(r#"{"size":"L"}"#)));
}

#[tokio::test]
async fn without_a_schema_the_answer_is_a_text_and_it_can_be_declined() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, TOOLS);
    let question = json!({ "question": "Which name?" });
    let (thread, interrupt) = asked(&models, &provider, "ask_user", &question).await;
    assert_eq!(interrupt["responseSchema"]["type"], "string");
    says(&provider, "Hello.");
    assert_eq!(result(&answer(&models, &thread, &interrupt, json!("Ada")).await), "Ada");

    let (thread, interrupt) = asked(&models, &provider, "ask_user", &question).await;
    says(&provider, "Then not.");
    let entry = json!({ "interruptId": interrupt["id"], "status": "cancelled" });
    let input = json!({ "threadId": thread, "runId": "r2", "messages": [], "resume": [entry] });
    assert!(result(&send(&models, input).await).contains("declined to answer"));
}

#[tokio::test]
async fn the_model_is_told_why_its_schema_is_refused() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, TOOLS);
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "items": inner }));
    for (schema, reason) in [
        (json!({ "type": "colour" }), "/type"),
        (deep, "deeper than"),
        (json!({ "description": "x".repeat(20_000) }), "longer than"),
        (json!({ "$ref": "http://127.0.0.1:1/schema" }), "127.0.0.1"),
        (json!({ "type": "string", "pattern": "(" }), "/pattern"),
    ] {
        let question = json!({ "question": "?", "schema": schema }).to_string();
        provider.answer(Answer::openai(&[call(0, "ask_user", &question)]));
        says(&provider, "Never mind.");
        let events = models.ask("Go on.").await;
        assert!(
            result(&events).starts_with("Error: the schema cannot be used")
                && result(&events).contains(reason)
        );
        assert_eq!(text_and_error(&events), ("Never mind.".to_owned(), None));
    }
}

#[tokio::test]
async fn a_plan_is_accepted_edited_or_rejected() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, TOOLS);
    let plan = json!({ "message": "All right?", "steps": ["Search", "Report"] });
    let step = |text: &str, status: &str| json!({ "description": text, "status": status });
    for (payload, expected) in [
        (
            json!({ "approved": true }),
            json!({ "approved": true, "edited": false, "steps": ["Search", "Report"] }),
        ),
        (
            json!({ "approved": true, "steps": [step("Search twice", "enabled"), step("Report", "disabled")] }),
            json!({ "approved": true, "edited": true, "steps": ["Search twice"] }),
        ),
        (
            json!({ "approved": false, "reason": "Too long" }),
            json!({ "approved": false, "reason": "Too long" }),
        ),
    ] {
        let (thread, interrupt) = asked(&models, &provider, "propose_plan", &plan).await;
        assert_eq!(
            (&interrupt["reason"], &interrupt["message"]),
            (&json!("plan_review"), &json!("All right?"))
        );
        let steps = json!([step("Search", "enabled"), step("Report", "enabled")]);
        assert_eq!(interrupt["metadata"]["agui-server.steps"], steps);
        says(&provider, "So be it.");
        let done = answer(&models, &thread, &interrupt, payload).await;
        assert_eq!(serde_json::from_str::<Value>(result(&done)).unwrap(), expected);
        assert_eq!(text_and_error(&done), ("So be it.".to_owned(), None));
    }
    let (thread, interrupt) = asked(&models, &provider, "propose_plan", &plan).await;
    let refused =
        answer(&models, &thread, &interrupt, json!({ "approved": true, "steps": ["Search"] }))
            .await;
    assert_eq!(refused.last().unwrap()["code"], "invalid_resume_payload");
}
