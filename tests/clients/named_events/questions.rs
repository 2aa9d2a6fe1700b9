//! Questions and plans of a model, by the tools `ask_user` and `propose_plan`.

use serde_json::{Value, json};

use super::{
    AGENT, CHAT, Frame, TestServer, call, chunk, named, on,
    provider::{Answer, Provider},
    said,
};

const TOOLS: &str = "[\"ask_user\", \"propose_plan\"]";

/// The model calls the tool; returns the question that the stream ends with.
async fn asked(
    server: &TestServer,
    provider: &Provider,
    thread: &str,
    tool: &str,
    arguments: &Value,
) -> Value {
    provider.answer(Answer::openai(&[call(&format!("call_{thread}"), tool, arguments)]));
    let frames = server.ask(AGENT, &on(thread, "go on")).await;
    let (name, question) = frames.last().unwrap();
    assert_eq!(name, "interrupt", "{frames:?}");
    question.clone()
}

/// Answers the question, and the model says that it is done.
async fn answer(
    server: &TestServer,
    provider: &Provider,
    thread: &str,
    content: impl Into<Value>,
) -> Vec<Frame> {
    provider.answer(Answer::openai(&[chunk(json!({ "content": "Done." }))]));
    server.ask(CHAT, &on(thread, content)).await
}

fn result(frames: &[Frame]) -> Value {
    assert_eq!(said(frames), "Done.", "{frames:?}");
    named(frames, "tool_result")[0]["content"].clone()
}

#[tokio::test]
async fn a_plan_of_a_model_is_reviewed_as_the_guide_describes() {
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, TOOLS, "");
    let plan = json!({ "steps": ["Search for weather data", "Generate summary report"] });
    let question = asked(&server, &provider, "t1", "propose_plan", &plan).await;
    let expected = json!({
        "id": question["id"],
        "thread_id": "t1",
        "content": "Review and modify the planned steps.",
        "finish_reason": "interrupt",
        "options": [
            { "label": "Approve", "value": "approve" },
            { "label": "Edit", "value": "edit" },
            { "label": "Reject", "value": "reject" },
        ],
        "context": { "steps": [
            { "description": "Search for weather data", "status": "enabled" },
            { "description": "Generate summary report", "status": "enabled" },
        ] },
    });
    assert_eq!(question, expected);
    let approved = json!({ "approved": true, "edited": false, "steps": plan["steps"] });
    assert_eq!(result(&answer(&server, &provider, "t1", "approve").await), approved.to_string());

    let edited = json!([{ "description": "Search", "status": "enabled" }]);
    for (thread, mut decision, expected) in [
        ("t2", json!({ "type": "approve" }), approved),
        (
            "t3",
            json!({ "type": "edit", "args": { "steps": edited } }),
            json!({ "approved": true, "edited": true, "steps": ["Search"] }),
        ),
        (
            "t4",
            json!({ "type": "reject", "reason": "Too long" }),
            json!({ "approved": false, "reason": "Too long" }),
        ),
    ] {
        let question = asked(&server, &provider, thread, "propose_plan", &plan).await;
        decision["actionId"] = question["id"].clone();
        let frames = answer(&server, &provider, thread, json!({ "decisions": [decision] })).await;
        assert_eq!(result(&frames), expected.to_string());
    }
    asked(&server, &provider, "t5", "propose_plan", &plan).await;
    let frames = server.ask(CHAT, &on("t5", "Leave out the report")).await;
    let (name, again) = frames.last().unwrap();
    assert!(
        name == "interrupt"
            && again["content"].as_str().unwrap().contains("neither a yes nor a no"),
        "{frames:?}"
    );
    assert_eq!(
        result(&answer(&server, &provider, "t5", "no").await),
        json!({ "approved": false }).to_string()
    );
}

#[tokio::test]
async fn a_question_of_a_model_is_answered_by_a_text_or_by_a_form() {
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, TOOLS, "");
    let question =
        asked(&server, &provider, "t1", "ask_user", &json!({ "question": "Which city?" })).await;
    assert_eq!(
        (&question["content"], question.get("action_requests")),
        (&json!("Which city?"), None)
    );
    assert_eq!(result(&answer(&server, &provider, "t1", "Rome").await), "Rome");

    let days = json!({ "type": "integer", "minimum": 1 });
    let schema = json!({ "type": "object", "properties": { "days": days, "hotel": {} }, "required": ["days"] });
    let arguments = json!({ "question": "How long?", "schema": schema });
    let question = asked(&server, &provider, "t2", "ask_user", &arguments).await;
    assert_eq!(question["context"]["schema"], schema);
    for invalid in ["three days", r#"{"days":0}"#] {
        let frames = server.ask(CHAT, &on("t2", invalid)).await;
        assert_eq!(frames.last().unwrap().1["type"], "invalid_resume_payload", "{invalid}");
    }
    assert_eq!(result(&answer(&server, &provider, "t2", r#"{"days":3}"#).await), r#"{"days":3}"#);

    // The page's editor of forms sends a decision, and a schema need not be an object.
    let question = asked(&server, &provider, "t3", "ask_user", &arguments).await;
    let edit = json!({ "actionId": question["id"], "type": "edit", "args": { "days": 2 } });
    let frames = answer(&server, &provider, "t3", json!({ "decisions": [edit] })).await;
    assert_eq!(result(&frames), r#"{"days":2}"#);
    asked(
        &server,
        &provider,
        "t4",
        "ask_user",
        &json!({ "question": "How many?", "schema": days }),
    )
    .await;
    assert_eq!(result(&answer(&server, &provider, "t4", "7").await), "7");
}
