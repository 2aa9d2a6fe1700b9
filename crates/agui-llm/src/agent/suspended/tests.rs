use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Block, LlmAgent, ModelStep,
    agent::tests::{
        PlayedRun, Scripted, ask, call, done, increment, next, play, result, results, says, text,
    },
};
use agui_agent::Agent;
use agui_tools::Approval;

const TASK: &str = r#"{"task":"1+1"}"#;

/// An agent that increments with an approval, and then speaks. Its call has this id.
fn helper(id: &str) -> (Scripted, Arc<dyn Agent>) {
    let model = Scripted::new([
        done([call(0, id, "increment", r#"{"n":1}"#)]),
        done([text(0, "So it is.")]),
    ]);
    (model.clone(), Arc::new(LlmAgent::new(model).tools(increment(Approval::Needed))))
}

fn chief(id: &str, helper: Arc<dyn Agent>) -> (Scripted, LlmAgent) {
    let model = Scripted::new([done([call(0, id, "helper", TASK)]), done([text(0, "Done.")])]);
    (model.clone(), LlmAgent::new(model).subagent("helper", "Helps.", helper))
}

fn interrupts(played: &PlayedRun) -> &Vec<Value> {
    let outcome = &played.end["outcome"];
    outcome["interrupts"].as_array().unwrap_or_else(|| panic!("{outcome}: {:?}", played.events))
}

fn answer(interrupt: &Value, payload: Value) -> Value {
    json!({ "interruptId": interrupt["id"], "status": "resolved", "payload": payload })
}

fn within(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| format!("> {line}")).collect()
}

#[test]
fn an_approval_of_a_subagent_suspends_it_and_the_answer_continues_inside_it() {
    for (id, reply, told) in [
        ("x", json!({ "approved": true }), "2"),
        ("x", json!({ "approved": true, "editedArgs": { "n": 41 } }), "42"),
        (
            "x",
            json!({ "approved": false, "reason": "no sums" }),
            "The user declined this call: no sums",
        ),
        // The model of each numbers its calls from 0.
        ("call_0", json!({ "approved": true }), "2"),
    ] {
        let (inner, helper) = helper(id);
        let (model, agent) = chief(if id == "x" { "c" } else { id }, helper);
        let asked = play(agent.clone(), ask("1+1?"));
        assert_eq!(asked.events.last().unwrap(), "SUBAGENT_FINISHED");
        let [interrupt] = &interrupts(&asked)[..] else { panic!() };
        let call =
            asked.messages.iter().flat_map(|message| message.tool_calls()).next_back().unwrap();
        assert_eq!(
            (&interrupt["toolCallId"], &interrupt["reason"]),
            (&json!(call.id), &json!("tool_call"))
        );
        let of_call =
            asked.messages.iter().find(|message| message.tool_calls().contains(call)).unwrap();
        assert_eq!(interrupt["subagentRunId"], json!(of_call.subagent_run_id().unwrap()));

        let played = play(agent, next(&asked, json!([answer(interrupt, reply)])));
        let expected = [
            vec!["SUBAGENT_STARTED \"helper\"".to_owned()],
            within(&[result(told), says("So it is.")].concat()),
            vec!["SUBAGENT_FINISHED".to_owned()],
            result("So it is."),
            says("Done."),
        ];
        assert_eq!(played.events, expected.concat());
        assert_eq!(played.end["outcome"], json!({ "type": "success" }));
        let [_, second] = &inner.requests()[..] else { panic!("the subagent began again") };
        let [ModelStep::User(_), ModelStep::Assistant(said), ModelStep::ToolResults(_)] =
            &second.steps[..]
        else {
            panic!("{:?}", second.steps)
        };
        assert!(matches!(&said[..], [Block::Call(_)]));
        assert_eq!(results(second)[0].0, told);
        assert_eq!(model.requests().len(), 2);
    }
}

#[test]
fn questions_of_two_tasks_and_of_the_agent_itself_are_answered_together() {
    let (_, first) = helper("x");
    let (_, second) = helper("x");
    let model = Scripted::new([
        done([
            call(0, "c", "first", TASK),
            call(1, "d", "second", TASK),
            call(2, "e", "increment", r#"{"n":5}"#),
        ]),
        done([text(0, "Done.")]),
    ]);
    let agent = LlmAgent::new(model.clone()).tools(increment(Approval::Needed));
    let agent = agent.subagent("first", "Helps.", first).subagent("second", "Helps.", second);
    let asked = play(agent.clone(), ask("?"));
    let all = interrupts(&asked);
    assert_eq!(all.len(), 3);
    let replies = all.iter().map(|interrupt| answer(interrupt, json!({ "approved": true })));
    let played = play(agent, next(&asked, replies.collect()));
    assert_eq!(played.events.last(), says("Done.").last());
    let mut told = results(&model.requests()[1]);
    told.sort();
    assert_eq!(
        told,
        [("6", false), ("So it is.", false), ("So it is.", false)]
            .map(|(text, failed)| (text.to_owned(), failed))
    );
}

#[test]
fn a_subagent_of_a_subagent_asks_and_continues_as_well() {
    for id in ["x", "call_0"] {
        let (_, leaf) = helper(id);
        let middle = Scripted::new([
            done([call(0, id, "leaf", TASK)]),
            done([text(0, "The leaf says so.")]),
        ]);
        let middle = LlmAgent::new(middle).subagent("leaf", "Adds.", leaf);
        let (model, agent) = chief(id, Arc::new(middle));
        let asked = play(agent.clone(), ask("?"));
        let [interrupt] = &interrupts(&asked)[..] else { panic!() };
        let played =
            play(agent, next(&asked, json!([answer(interrupt, json!({ "approved": true }))])));
        assert_eq!(played.events.last(), says("Done.").last(), "{:?}", played.events);
        assert_eq!(results(&model.requests()[1]), [("The leaf says so.".to_owned(), false)]);
    }
}

#[test]
fn a_second_question_of_a_task_is_asked_in_the_same_invocation() {
    let inner = Scripted::new([
        done([call(0, "x", "increment", r#"{"n":1}"#)]),
        done([call(0, "y", "increment", r#"{"n":2}"#)]),
        done([text(0, "Both.")]),
    ]);
    let (_, agent) = chief("c", Arc::new(LlmAgent::new(inner).tools(increment(Approval::Needed))));
    let first = play(agent.clone(), ask("?"));
    let second = play(
        agent.clone(),
        next(&first, json!([answer(&interrupts(&first)[0], json!({ "approved": true }))])),
    );
    assert_eq!(interrupts(&second)[0]["subagentRunId"], interrupts(&first)[0]["subagentRunId"]);
    let played = play(
        agent,
        next(&second, json!([answer(&interrupts(&second)[0], json!({ "approved": true }))])),
    );
    assert_eq!(played.events.last(), says("Done.").last(), "{:?}", played.events);
}

#[test]
fn an_answer_decides_on_the_call_that_was_shown_and_on_no_other() {
    let (inner, helper) = helper("x");
    let (_, agent) = chief("c", helper);
    let asked = play(agent.clone(), ask("?"));
    let id = interrupts(&asked)[0]["id"].as_str().unwrap();
    let start = id.rfind("approval:").unwrap();
    let digest = &id[start + 9..start + 19];
    let other = id.replace(digest, "0000000000");
    let entry =
        json!([{ "interruptId": other, "status": "resolved", "payload": { "approved": true } }]);
    let played = play(agent, next(&asked, entry));
    assert_eq!(interrupts(&played)[0]["id"], id, "the task asks again");
    assert_eq!(inner.requests().len(), 1);
}
