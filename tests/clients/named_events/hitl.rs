//! The guide's three kinds of interrupts, and their answers.

use serde_json::{Value, json};

use super::{
    AGENT, CHAT, Frame, TestServer, call, chunk, named, names, on,
    provider::{Answer, Provider},
    said, thread, user,
};

/// The one question that a stream ends with.
fn question(frames: &[Frame]) -> &Value {
    let (name, question) = frames.last().unwrap();
    assert_eq!(name, "interrupt", "{frames:?}");
    assert_eq!(
        (&question["finish_reason"], named(frames, "interrupt").len()),
        (&json!("interrupt"), 1)
    );
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
    TestServer::from_script(
        r#"
[[answer]]
when.user = '^draft'
play = [
    { text = "A draft." },
    { interrupts = [{ name = "review", message = "Review the agent's response. Type 'ACCEPTED' to finish." }] },
]
[[answer]]
when.replies = "review"
play = [{ text = "Answer: {reply}" }]
[[answer]]
when.user = '^plan'
play = [{ interrupts = [{ name = "plan", metadata = { "agui-server.steps" = [
    { description = "Search for weather data", status = "enabled" }, "Generate summary report",
] } }] }]
[[answer]]
when.replies = "plan"
when.approved = true
play = [{ text = "Going on: {reply}" }]
[[answer]]
when.replies = "plan"
play = [{ text = "Stopped: {reply}" }]
[[answer]]
when.user = '^brief'
play = [{ interrupts = [{ name = "brief", expires_in_secs = 1 }] }]
[[answer]]
when.user = '^long'
play = [{ interrupts = [{ name = "brief", expires_in_secs = 600 }] }]
[[answer]]
when.replies = "brief"
when.approved = false
play = [{ text = "Too late." }]
[[answer]]
when.replies = "brief"
play = [{ text = "In time." }]
[[answer]]
play = [{ text = "You said: {text}" }]
"#,
    )
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
    // No interrupt is open, so the same text is an ordinary message.
    assert_eq!(said(&server.ask(CHAT, &on(&id, "ACCEPTED")).await), "You said: ACCEPTED");
    let id = thread(&server.ask(CHAT, &user("draft")).await);
    let feedback = "Please also include humidity data in the analysis.";
    assert_eq!(said(&server.ask(CHAT, &on(&id, feedback)).await), format!("Answer: {feedback}"));
    // The answer is the option's value, or text in blocks.
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
        (
            json!({ "type": "reject", "reason": "Too long" }),
            "Stopped: {\"approved\":false,\"reason\":\"Too long\"}",
        ),
        (json!({ "type": "approve" }), "Going on: {\"approved\":true}"),
    ] {
        let (id, asked) = ask().await;
        let mut decision = answer;
        decision["actionId"] = asked["id"].clone();
        assert_eq!(said(&server.ask(CHAT, &on(&id, decisions(json!([decision])))).await), told);
    }
    let (id, mut asked) = ask().await;
    let frames = server.ask(CHAT, &on(&id, "Leave out the report")).await;
    asked["content"] =
        "\"Leave out the report\" is neither a yes nor a no. Answer \"approve\" or \"reject\".\n\n\
                        Review and modify the planned steps."
            .into();
    assert_eq!(question(&frames), &asked);
    assert_eq!(said(&server.ask(CHAT, &on(&id, "no")).await), "Stopped: {\"approved\":false}");
}

#[tokio::test]
async fn an_unclear_answer_asks_again_and_says_why() {
    let server = TestServer::demo();
    for (prompt, unclear, why, yes, done) in [
        (
            "approve",
            "well",
            "\"well\" is neither a yes nor a no. Answer \"approve\" or \"reject\".\n\n",
            "yes",
            "sent to ada",
        ),
        (
            "批准",
            "好像可以",
            "“好像可以”既不是同意，也不是拒绝。请回答“同意”或“拒绝”。\n\n",
            "是",
            "已发送给 ada",
        ),
    ] {
        let first = server.ask(CHAT, &user(prompt)).await;
        let (id, asked) = (thread(&first), question(&first).clone());
        for _ in 0..2 {
            let frames = server.ask(CHAT, &on(&id, unclear)).await;
            let mut expected = asked.clone();
            expected["content"] = format!("{why}{}", asked["content"].as_str().unwrap()).into();
            assert_eq!(question(&frames), &expected);
            assert!(named(&frames, "tool_result").is_empty(), "{frames:?}");
        }
        let frames = server.ask(CHAT, &on(&id, yes)).await;
        assert!(said(&frames).contains(done), "{frames:?}");
    }
    for no in ["no", "reject", "拒绝", "不"] {
        let id = thread(&server.ask(CHAT, &user("approve")).await);
        let frames = server.ask(CHAT, &on(&id, no)).await;
        assert_eq!(said(&frames), "The e-mail \"Lunch\": declined, so it was not sent.");
    }
}

#[tokio::test]
async fn decisions_about_nothing_open_are_an_error() {
    let server = TestServer::demo();
    let id = thread(&server.ask(CHAT, &user("hello")).await);
    let late = decisions(json!([{ "actionId": "int_1", "type": "approve" }]));
    let mut bodies = vec![on(&id, late.clone()), on("never-seen", late.clone())];
    bodies.push(user(late));
    for body in bodies {
        let frames = server.ask(CHAT, &body).await;
        let [(name, error)] = &frames[..] else { panic!("{frames:?}") };
        assert_eq!((name.as_str(), &error["type"]), ("error", &json!("no_open_question")));
        assert!(error["message"].as_str().unwrap().contains("no question is open"), "{error}");
    }
    let url = format!("{}/threads/never-seen", server.process.url);
    assert_eq!(server.client.get(url).send().await.unwrap().status(), 404, "no thread was begun");
}

#[tokio::test]
async fn an_edit_changes_one_argument_alone() {
    let server = TestServer::demo();
    for (prompt, done) in [
        (
            "delete inactive users",
            "The database: ran DELETE FROM users WHERE status = 'inactive' on at most 100 rows.",
        ),
        (
            "删除不活跃的用户",
            "数据库：已执行 DELETE FROM users WHERE status = 'inactive'，最多 100 行。",
        ),
    ] {
        let first = server.ask(CHAT, &user(prompt)).await;
        let (id, asked) = (thread(&first), question(&first));
        let frames = server
            .ask(CHAT, &on(&id, decide(asked, json!({ "type": "edit", "args": { "limit": 100 } }))))
            .await;
        assert_eq!(said(&frames), done);
    }
}

#[tokio::test]
async fn the_demo_asks_for_feedback_and_for_the_review_of_a_plan() {
    let server = TestServer::demo();
    for (prompt, feedback, again, accepted) in [
        (
            "feedback",
            "Please also include humidity data in the analysis.",
            "Another draft, with your feedback: ",
            "Accepted",
        ),
        ("反馈", "请加上湿度数据。", "新的草稿，按你的反馈修改：", "已接受"),
    ] {
        let first = server.ask(CHAT, &user(prompt)).await;
        let id = thread(&first);
        assert_eq!(question(&first)["options"][0]["value"], "accepted");
        let frames = server.ask(CHAT, &on(&id, feedback)).await;
        assert_eq!(said(&frames), format!("{again}{feedback}"));
        question(&frames);
        assert!(said(&server.ask(CHAT, &on(&id, "ACCEPTED")).await).starts_with(accepted));
    }
    for (prompt, yes, done, edited) in [
        (
            "review a plan",
            "approve",
            "The plan is approved: all three steps are done.",
            "I take the steps that you changed: ",
        ),
        ("审核计划", "同意", "计划已批准：三个步骤都做完了。", "我按你修改的步骤做："),
    ] {
        let first = server.ask(CHAT, &user(prompt)).await;
        assert_eq!(question(&first)["context"]["steps"].as_array().unwrap().len(), 3);
        assert_eq!(said(&server.ask(CHAT, &on(&thread(&first), yes)).await), done);
        let first = server.ask(CHAT, &user(prompt)).await;
        let asked = question(&first);
        let edit =
            json!({ "actionId": asked["id"], "type": "edit", "args": { "steps": ["Search"] } });
        let frames = server.ask(CHAT, &on(&thread(&first), decisions(json!([edit])))).await;
        assert_eq!(said(&frames), format!("{edited}[\"Search\"]"));
    }
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
    assert_eq!(names(&again), ["error"]);
    // Edited arguments that do not fit the tool's schema are refused. Then a text rejects the call.
    let first = server.ask(CHAT, &user("approve")).await;
    let (id, asked) = (thread(&first), question(&first));
    let frames = server
        .ask(CHAT, &on(&id, decide(asked, json!({ "type": "edit", "args": { "to": 7 } }))))
        .await;
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
    let named: Vec<_> =
        actions.iter().map(|action| (&action["name"], &action["arguments"])).collect();
    let hotel = json!({ "city": "Beijing", "nights": 2 });
    assert_eq!(
        named,
        [(&json!("book_train"), &json!({ "to": "Beijing" })), (&json!("book_hotel"), &hotel)]
    );
    assert_eq!(asked["content"], "Review and approve these actions before execution.");
    // Their schemas do not offer edits.
    assert_eq!(asked["options"].as_array().unwrap().len(), 2);
    assert_eq!(asked["review_configs"][0]["allowedDecisions"], json!(["approve", "reject"]));
    let decision =
        |at: usize, kind: &str| json!({ "actionId": actions[at]["actionId"], "type": kind });
    let mut edit = decision(0, "edit");
    edit["args"] = json!({ "to": "Shanghai" });
    let refused =
        server.send(AGENT, &on(&id, decisions(json!([edit, decision(1, "approve")])))).await;
    assert_eq!(refused.status(), 400);
    let refusal: Value = refused.json().await.unwrap();
    assert_eq!(refusal["error"]["path"], "messages[0].content.decisions[0].type");
    // If any interrupt has no answer, no call runs, and the question is sent again.
    let frames = server.ask(AGENT, &on(&id, decisions(json!([decision(0, "approve")])))).await;
    let mut again = asked.clone();
    let missing = "No decision was sent about: Book a hotel in Beijing for 2 nights?.";
    again["content"] = format!("{missing}\n\n{}", asked["content"].as_str().unwrap()).into();
    assert_eq!(question(&frames), &again);
    // A decision about something else is refused, with the actions that are open.
    let other = json!({ "actionId": "action-1", "type": "approve" });
    let refused =
        server.send(AGENT, &on(&id, decisions(json!([decision(0, "approve"), other])))).await;
    assert_eq!(refused.status(), 400);
    let refusal: Value = refused.json().await.unwrap();
    assert_eq!(refusal["error"]["path"], "messages[0].content.decisions[1].actionId");
    let message = refusal["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("\"action-1\"")
            && message.contains(actions[1]["actionId"].as_str().unwrap()),
        "{message}"
    );
    let mut no = decision(1, "reject");
    no["reason"] = "Too dear".into();
    let frames = server.ask(CHAT, &on(&id, decisions(json!([decision(0, "approve"), no])))).await;
    assert_eq!(
        said(&frames),
        "Done: a train to Beijing is booked; declined, so no hotel is booked."
    );
}

#[tokio::test]
async fn a_form_is_answered_by_json() {
    let server = TestServer::demo();
    let first = server.ask(CHAT, &user("form")).await;
    let (id, asked) = (thread(&first), question(&first));
    assert_eq!(asked["context"]["schema"]["required"], json!(["name", "email", "size"]));
    let offered: Vec<_> =
        asked["options"].as_array().unwrap().iter().map(|option| &option["value"]).collect();
    assert_eq!(
        offered,
        ["edit", "reject"],
        "there is nothing to accept before the form is filled in"
    );
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
    let sql =
        || provider.requests().iter().filter(|request| request.path.starts_with("/sql")).count();
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
    assert!(
        named(&frames, "tool_result")[0]["content"].as_str().unwrap().contains("Too dangerous"),
        "{frames:?}"
    );
    // A text that is not one of the words for yes and no runs nothing.
    ask("t3").await;
    let frames = server.ask(AGENT, &on("t3", "yes, but only the inactive ones")).await;
    assert!(
        question(&frames)["content"]
            .as_str()
            .unwrap()
            .starts_with("\"yes, but only the inactive ones\" is neither")
    );
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
    let expiry: jiff::Timestamp =
        stored["interrupts"][0]["expiresAt"].as_str().unwrap().parse().unwrap();
    while jiff::Timestamp::now() < expiry {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(said(&server.ask(CHAT, &on(&id, "ACCEPTED")).await), "Too late.");
}
