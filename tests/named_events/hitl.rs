//! The guide's three kinds of interrupts, and their answers.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::{
    AGENT, CHAT, Frame, TestServer, call, chunk, named, names, on,
    process::Process,
    provider::{Answer, Provider},
    said, thread, user,
};

/// The one question that a stream ends with.
fn question(frames: &[Frame]) -> &Value {
    let (name, question) = frames.last().unwrap();
    assert_eq!(name, "interrupt", "{frames:?}");
    assert_eq!((&question["finish_reason"], named(frames, "interrupt").len()), (&json!("interrupt"), 1));
    question
}

fn decisions(list: Value) -> Value {
    json!({ "decisions": list })
}

fn decide(question: &Value, decision: Value) -> Value {
    let mut decision = decision;
    decision["actionId"] = question["action_requests"][0]["actionId"].clone();
    decisions(json!([decision]))
}

/// Starts a script that asks for feedback and for the approval of a plan.
fn asking() -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("asking.toml"),
        r#"
[[reply]]
when.user = '^draft'
play = [
    { text = "A draft." },
    { interrupts = [{ name = "review", message = "Review the agent's response. Type 'ACCEPTED' to finish." }] },
]
[[reply]]
when.answers = "review"
play = [{ text = "Answer: {answer}" }]
[[reply]]
when.user = '^plan'
play = [{ interrupts = [{ name = "plan", metadata = { steps = [
    { description = "Search for weather data", status = "enabled" }, "Generate summary report",
] } }] }]
[[reply]]
when.answers = "plan"
when.approved = true
play = [{ text = "Going on: {answer}" }]
[[reply]]
when.answers = "plan"
play = [{ text = "Stopped: {answer}" }]
[[reply]]
when.user = '^brief'
play = [{ interrupts = [{ name = "brief", expires_in_secs = 1 }] }]
[[reply]]
when.user = '^long'
play = [{ interrupts = [{ name = "brief", expires_in_secs = 600 }] }]
[[reply]]
when.answers = "brief"
when.approved = false
play = [{ text = "Too late." }]
[[reply]]
when.answers = "brief"
play = [{ text = "In time." }]
[[reply]]
play = [{ text = "You said: {text}" }]
"#,
    )
    .unwrap();
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile_in(folder.keep()).unwrap();
    file.write_all(b"[agents.asking]\nkind = \"script\"\nscript = \"asking.toml\"").unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    TestServer::new(Process::start(&["--config", &path], &[]), Some(file))
}

#[tokio::test]
async fn a_question_for_feedback_is_answered_by_a_text() {
    let server = asking();
    let first = server.ask(CHAT, &user("draft")).await;
    let id = thread(&first);
    let asked = question(&first);
    let expected = json!({
        "id": asked["id"],
        "thread_id": id,
        "content": "Review the agent's response. Type 'ACCEPTED' to finish.",
        "finish_reason": "interrupt",
        "options": [
            { "label": "Accept", "value": "accepted" }, { "label": "Provide Feedback", "value": "feedback" },
        ],
    });
    assert_eq!(asked, &expected);
    assert_eq!(said(&server.ask(CHAT, &on(&id, "ACCEPTED")).await), "Answer: ACCEPTED");
    // No interrupt is open any more, so the same text is an ordinary message.
    assert_eq!(said(&server.ask(CHAT, &on(&id, "ACCEPTED")).await), "You said: ACCEPTED");
    let id = thread(&server.ask(CHAT, &user("draft")).await);
    let feedback = "Please also include humidity data in the analysis.";
    assert_eq!(said(&server.ask(CHAT, &on(&id, feedback)).await), format!("Answer: {feedback}"));
    // As the option's value, and in blocks.
    for accepted in [json!("accepted"), json!([{ "type": "text", "text": "Accepted" }])] {
        let id = thread(&server.ask(CHAT, &user("draft")).await);
        assert_eq!(said(&server.ask(CHAT, &on(&id, accepted)).await), "Answer: ACCEPTED");
    }
}

#[tokio::test]
async fn a_plan_is_shown_with_its_steps() {
    let server = asking();
    let ask = async || {
        let frames = server.ask(CHAT, &user("plan")).await;
        let asked = question(&frames).clone();
        (thread(&frames), asked)
    };
    let (id, asked) = ask().await;
    let expected = json!({
        "id": asked["id"],
        "thread_id": id,
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
    assert_eq!(asked, expected);
    assert_eq!(said(&server.ask(CHAT, &on(&id, "approve")).await), "Going on: {\"approved\":true}");
    let steps = json!({ "steps": [{ "description": "Search", "status": "disabled" }] });
    for (answer, told) in [
        (
            json!({ "type": "edit", "args": steps }),
            "Going on: {\"approved\":true,\"steps\":[{\"description\":\"Search\",\"status\":\"disabled\"}]}",
        ),
        (json!({ "type": "reject", "reason": "Too long" }), "Stopped: {\"approved\":false,\"reason\":\"Too long\"}"),
        (json!({ "type": "approve" }), "Going on: {\"approved\":true}"),
    ] {
        let (id, asked) = ask().await;
        let mut decision = answer;
        decision["actionId"] = asked["id"].clone();
        assert_eq!(said(&server.ask(CHAT, &on(&id, decisions(json!([decision])))).await), told);
    }
    let (id, _) = ask().await;
    let told = said(&server.ask(CHAT, &on(&id, "Leave out the report")).await);
    assert_eq!(told, "Stopped: {\"approved\":false,\"reason\":\"Leave out the report\"}");
}

#[tokio::test]
async fn an_action_can_be_edited_and_rejected() {
    let server = TestServer::demo();
    let first = server.ask(CHAT, &user("approve")).await;
    let id = thread(&first);
    let asked = question(&first);
    let expected = json!({
        "id": asked["id"],
        "thread_id": id,
        "content": "Send the e-mail \"Lunch\" to ada@example.com?",
        "finish_reason": "interrupt",
        "options": [
            { "label": "Approve", "value": "approve" },
            { "label": "Edit", "value": "edit" },
            { "label": "Reject", "value": "reject" },
        ],
        "action_requests": [{
            "actionId": asked["id"],
            "name": "send_email",
            "arguments": { "to": "ada@example.com", "subject": "Lunch", "body": "At noon?" },
            "description": "Send the e-mail \"Lunch\" to ada@example.com?",
        }],
        "review_configs": [{ "action_name": "send_email", "allowedDecisions": ["approve", "edit", "reject"] }],
    });
    assert_eq!(asked, &expected);
    let edited = json!({ "to": "bob@example.com", "subject": "Tea", "body": "At four?" });
    let edit = decide(asked, json!({ "type": "edit", "args": edited }));
    let frames = server.ask(CHAT, &on(&id, edit.clone())).await;
    assert_eq!(named(&frames, "tool_result")[0]["content"], "sent to bob@example.com");
    assert_eq!(said(&frames), "The e-mail \"Tea\": sent to bob@example.com.");
    // The answer is repeated, as after a lost response: the call does not run again.
    let again = server.ask(CHAT, &on(&id, edit)).await;
    assert_eq!(names(&again), ["status"]);
    // Edited arguments that do not fit the tool's schema are refused. Then a text rejects the call.
    let first = server.ask(CHAT, &user("approve")).await;
    let (id, asked) = (thread(&first), question(&first));
    let frames = server.ask(CHAT, &on(&id, decide(asked, json!({ "type": "edit", "args": { "to": 7 } })))).await;
    assert_eq!(frames.last().unwrap().1["type"], "invalid_resume_payload");
    let frames = server.ask(CHAT, &on(&id, "reject")).await;
    assert_eq!(said(&frames), "The e-mail \"Lunch\": declined, so it was not sent.");
}

#[tokio::test]
async fn several_actions_are_one_question() {
    let server = TestServer::demo();
    let first = server.ask(AGENT, &user("approve two")).await;
    let (id, asked) = (thread(&first), question(&first).clone());
    let actions = asked["action_requests"].as_array().unwrap();
    let named: Vec<_> = actions.iter().map(|action| (&action["name"], &action["arguments"])).collect();
    let hotel = json!({ "city": "Beijing", "nights": 2 });
    assert_eq!(named, [(&json!("book_train"), &json!({ "to": "Beijing" })), (&json!("book_hotel"), &hotel)]);
    assert_eq!(asked["content"], "Review and approve these actions before execution.");
    // Their schemas do not offer edits.
    assert_eq!(asked["options"].as_array().unwrap().len(), 2);
    assert_eq!(asked["review_configs"][0]["allowedDecisions"], json!(["approve", "reject"]));
    let decision = |at: usize, kind: &str| json!({ "actionId": actions[at]["actionId"], "type": kind });
    let mut edit = decision(0, "edit");
    edit["args"] = json!({ "to": "Shanghai" });
    let refused = server.send(AGENT, &on(&id, decisions(json!([edit, decision(1, "approve")])))).await;
    assert_eq!(refused.status(), 400);
    let refusal: Value = refused.json().await.unwrap();
    assert_eq!(refusal["error"]["path"], "messages[0].content.decisions[0].type");
    // If any interrupt has no answer, no call runs, and the question is sent again.
    let frames = server.ask(AGENT, &on(&id, decisions(json!([decision(0, "approve")])))).await;
    assert_eq!(question(&frames), &asked);
    let mut no = decision(1, "reject");
    no["reason"] = "Too dear".into();
    let frames = server.ask(CHAT, &on(&id, decisions(json!([decision(0, "approve"), no])))).await;
    assert_eq!(said(&frames), "Done: a train to Beijing is booked; declined, so no hotel is booked.");
}

#[tokio::test]
async fn a_form_is_answered_by_json() {
    let server = TestServer::demo();
    let first = server.ask(CHAT, &user("form")).await;
    let (id, asked) = (thread(&first), question(&first));
    assert_eq!(asked["context"]["schema"]["required"], json!(["name", "email", "size"]));
    let frames = server.ask(CHAT, &on(&id, "L, for Ada")).await;
    assert_eq!(frames.last().unwrap().1["type"], "invalid_resume_payload");
    let answer = json!({ "name": "Ada", "email": "ada@example.com", "size": "L" });
    let frames = server.ask(CHAT, &on(&id, answer.to_string())).await;
    assert!(said(&frames).starts_with("Thank you, Ada!"), "{frames:?}");
}

#[tokio::test]
async fn an_agent_with_a_model_follows_the_decision() {
    let provider = Provider::start().await;
    let tool = format!(
        "[tools.execute_sql]\nkind = \"http\"\ndescription = \"Runs SQL\"\napproval = \"always\"\n\
         url = \"{}/sql?query={{query}}\"\n",
        provider.url()
    );
    let server = TestServer::with(&provider, "[\"execute_sql\"]", &tool);
    let query = json!({ "query": "DELETE FROM users" });
    let ask = async |thread: &str| {
        provider.answer(Answer::openai(&[call("call_1", "execute_sql", &query)]));
        question(&server.ask(AGENT, &on(thread, "tidy up")).await).clone()
    };
    let done = || provider.answer(Answer::openai(&[chunk(json!({ "content": "Done." }))]));
    let sql = || provider.requests().iter().filter(|request| request.path.starts_with("/sql")).count();
    // Approved on the other endpoint: the answer goes to the agent that raised the interrupt.
    let asked = ask("t1").await;
    assert_eq!(asked["action_requests"][0]["arguments"], query);
    provider.answer(Answer::new(200, ["3 rows"]).header("content-type", "text/plain"));
    done();
    let frames = server.ask(CHAT, &on("t1", decide(&asked, json!({ "type": "approve" })))).await;
    assert_eq!((said(&frames), sql()), ("Done.".to_owned(), 1));
    assert_eq!(named(&frames, "tool_result")[0]["content"], "3 rows");
    assert_eq!(named(&frames, "message")[0]["agent"], "worker");
    // Rejected: the model gets the reason, and the tool is not called.
    let asked = ask("t2").await;
    done();
    let no = json!({ "type": "reject", "reason": "Too dangerous" });
    let frames = server.ask(AGENT, &on("t2", decide(&asked, no))).await;
    assert!(named(&frames, "tool_result")[0]["content"].as_str().unwrap().contains("Too dangerous"), "{frames:?}");
    // A text that is not one of the words for a yes is a refusal.
    ask("t3").await;
    done();
    let frames = server.ask(AGENT, &on("t3", "yes, but only the inactive ones")).await;
    assert!(named(&frames, "tool_result")[0]["content"].as_str().unwrap().contains("only the inactive ones"));
    assert_eq!(sql(), 1);
    // Edited.
    let asked = ask("t4").await;
    provider.answer(Answer::new(200, ["1 row"]));
    done();
    let edit = json!({ "type": "edit", "args": { "query": "SELECT 1" } });
    server.ask(AGENT, &on("t4", decide(&asked, edit))).await;
    let requests = provider.requests();
    let last = requests.iter().rev().find(|request| request.path.starts_with("/sql")).unwrap();
    assert!(last.path.contains("SELECT") && !last.path.contains("DELETE"), "{}", last.path);
}

#[tokio::test]
async fn any_answer_cancels_an_expired_question() {
    let server = asking();
    let ask = async |what| thread(&server.ask(CHAT, &user(what)).await);
    let id = ask("long").await;
    assert_eq!(said(&server.ask(CHAT, &on(&id, "ACCEPTED")).await), "In time.");
    let id = ask("brief").await;
    let url = format!("{}/threads/{id}", server.process.url);
    let stored: Value = server.client.get(url).send().await.unwrap().json().await.unwrap();
    let expiry: jiff::Timestamp = stored["interrupts"][0]["expiresAt"].as_str().unwrap().parse().unwrap();
    while jiff::Timestamp::now() < expiry {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(said(&server.ask(CHAT, &on(&id, "ACCEPTED")).await), "Too late.");
}
