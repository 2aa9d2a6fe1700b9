//! The end of a run and of its subagents.

use super::*;
use agui_protocol::{Interrupt, event::RunFinished};

fn finish(outcome: RunOutcome, events: Value) -> (Value, Vec<Value>) {
    let mut guard = Guard::new(&RunAgentInput::new("t", "r", vec![]));
    let mut out: Vec<Event> = Vec::new();
    for event in serde_json::from_value::<Vec<Event>>(events).unwrap() {
        guard.admit(event, &mut out).unwrap();
    }
    let mut finished = RunFinished::new("t".into(), "r".into(), outcome);
    guard.check_ending(&finished).unwrap();
    guard.finish(&mut finished, &mut out);
    let out = out.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    (serde_json::to_value(finished.outcome).unwrap(), out)
}

#[test]
fn pending_tool_calls_are_listed_in_order() {
    let result =
        json!({ "type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "b", "content": "" });
    let calls = json!([call_start("z"), call_end("z"), call_start("b"), result, call_start("a")]);
    let (outcome, _) = finish(RunOutcome::success(), calls.clone());
    assert_eq!(outcome, json!({ "type": "success", "pendingToolCallIds": ["z", "a"] }));
    let interrupt = RunOutcome::Interrupt { interrupts: vec![Interrupt::new("x")] };
    assert_eq!(finish(interrupt, calls).0.get("pendingToolCallIds"), None);
    assert_eq!(finish(RunOutcome::success(), json!([])).0, json!({ "type": "success" }));
}

#[test]
fn an_interrupt_suspends_active_subagents() {
    let mut own = Interrupt::new("approval");
    own.subagent_run_id = Some("s".into());
    let id = own.id.clone();
    let outcome = RunOutcome::Interrupt { interrupts: vec![Interrupt::new("other"), own] };
    let started =
        |id: &str| json!({ "type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n" });
    let (_, out) = finish(outcome, json!([started("s"), started("t")]));
    assert_eq!(
        out[2],
        json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "t", "outcome": { "type": "suspended" } })
    );
    assert_eq!(
        out[3],
        json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": { "type": "suspended", "interruptIds": [id.as_str()] } })
    );
}

#[test]
fn subagents_of_an_incomplete_run_do_not_succeed() {
    for (closing, code) in [
        (RunClosing::Cancelled, "cancelled"),
        (RunClosing::Finished(&RunOutcome::Cancelled), "cancelled"),
        (RunClosing::Failed, "run_failed"),
    ] {
        let mut guard = Guard::default();
        let mut out = Vec::new();
        let started = json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n" });
        guard.admit(serde_json::from_value(started).unwrap(), &mut out).unwrap();
        guard.close_all(&closing, &mut out);
        let last = serde_json::to_value(out.last()).unwrap();
        assert_eq!((&last["type"], &last["code"]), (&json!("SUBAGENT_ERROR"), &json!(code)));
    }
}

#[test]
fn an_interrupt_outcome_has_interrupts_with_distinct_ids() {
    let check = |interrupts| {
        let outcome = RunOutcome::Interrupt { interrupts };
        Guard::default().check_ending(&RunFinished::new("t".into(), "r".into(), outcome))
    };
    assert!(check(vec![Interrupt::new("x"), Interrupt::new("x")]).is_ok());
    assert_eq!(
        check(vec![]).unwrap_err().to_string(),
        "RUN_FINISHED: an interrupt outcome without an interrupt"
    );
    let twice = Interrupt::new("x");
    assert!(
        check(vec![twice.clone(), twice])
            .unwrap_err()
            .to_string()
            .contains("two interrupts with the id")
    );
}
