use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::drive::guard::Guard;
use agui_agent::emit::{ReasoningSpan, Step, TextMessage, ToolCallEvents};
use agui_protocol::{
    SubagentRunId,
    event::{
        ActivityDelta, ActivitySnapshot, MessagesSnapshot, StateSnapshot, SubagentFinished,
        SubagentStarted, ToolCallResult,
    },
    host::JsonPatch,
};

fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.id().as_str()).collect()
}

fn started() -> Transcript {
    Transcript::new(vec![Message::user("u1", "one"), Message::assistant("a1", "two")], json!({}))
}

#[test]
fn new_messages_are_separate_from_the_base() {
    let mut transcript = started();
    let before = transcript.messages();
    TextMessage::with_id("a2").start();
    for event in [TextMessage::with_id("a2").start(), TextMessage::with_id("a2").delta("three")] {
        transcript.apply(&event);
    }
    assert_eq!(ids(&before), ["u1", "a1"]);
    let TranscriptChanges { kept, updated, new, state } = transcript.into_changes();
    assert_eq!((kept, updated, ids(&new), state), (2, vec![], vec!["a2"], None));
}

#[test]
fn a_continued_base_message_is_changed_in_place() {
    let mut transcript = started();
    for event in [TextMessage::with_id("a1").start(), TextMessage::with_id("a1").delta(" more")] {
        transcript.apply(&event);
    }
    let TranscriptChanges { kept, updated, new, .. } = transcript.into_changes();
    assert_eq!((kept, updated, new), (2, vec![(1, Message::assistant("a1", "two more"))], vec![]));
}

#[test]
fn a_result_follows_its_call_and_later_messages_become_new() {
    let mut transcript = started();
    for event in ToolCallEvents::with_id("c", "f").whole(&json!({})) {
        transcript.apply(&event);
    }
    let mut messages = transcript.messages().to_vec();
    messages.push(Message::user("u2", "later"));
    let mut transcript = Transcript::new(messages, json!({}));
    transcript.apply(&ToolCallResult::new("t", "c", "x").into());
    assert_eq!(ids(&transcript.messages()), ["u1", "a1", "c", "t", "u2"]);
    let TranscriptChanges { kept, new, .. } = transcript.into_changes();
    assert_eq!((kept, ids(&new)), (3, vec!["t", "u2"]));
}

#[test]
fn a_snapshot_in_the_same_order_changes_messages_in_place() {
    let mut transcript = started();
    let restated = vec![
        Message::user("u1", "ONE"),
        Message::assistant("a1", "two"),
        Message::user("new", "x"),
    ];
    transcript.apply(&MessagesSnapshot::new(restated).into());
    let TranscriptChanges { kept, updated, new, .. } = transcript.into_changes();
    assert_eq!((kept, updated, ids(&new)), (2, vec![(0, Message::user("u1", "ONE"))], vec!["new"]));
    let mut transcript = started();
    transcript.apply(&MessagesSnapshot::new(vec![Message::assistant("a1", "two")]).into());
    assert_eq!(ids(&transcript.messages()), ["a1"]);
    let TranscriptChanges { kept, new, .. } = transcript.into_changes();
    assert_eq!((kept, ids(&new)), (0, vec!["a1"]));
}

#[test]
fn state_events_mark_the_state_as_changed() {
    let mut transcript = Transcript::new(Vec::new(), json!({ "a": 1 }));
    assert_eq!(transcript.clone().into_changes().state, None);
    transcript.apply(&StateSnapshot::new(json!({ "a": 2 })).into());
    assert_eq!(transcript.into_changes().state, Some(json!({ "a": 2 })));
}

#[test]
fn deltas_of_two_messages_may_interleave() {
    let (a, b) = (MessageId::from("a"), MessageId::from("b"));
    let metadata = json!({ "k": 1 });
    let mut transcript =
        Transcript::new(vec![Message::user("a", "1"), Message::user("b", "1")], Value::Null);
    transcript.append(&a, "2", None);
    transcript.append(&b, "2", None);
    transcript.append(&a, "3", metadata.as_object());
    transcript.append(&"unknown".into(), "x", None);
    let messages = json!(transcript.messages());
    assert_eq!((&messages[0]["content"], &messages[1]["content"]), (&json!("123"), &json!("12")));
    assert_eq!(messages[0]["metadata"], metadata);
}

#[test]
fn an_activity_delta_that_does_not_apply_changes_the_metadata_alone() {
    let event = |json: Value| serde_json::from_value::<Event>(json).unwrap();
    let delta = |id: &str, path: &str, more: Value| {
        let mut json = json!({
            "type": "ACTIVITY_DELTA", "messageId": id, "activityType": "PLAN", "patch": [{ "op": "remove", "path": path }]
        });
        json.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event(json)
    };
    let metadata = json!({ "metadata": { "k": 1 } });
    let mut transcript = started();
    transcript.apply(&event(json!({
        "type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "PLAN", "content": { "steps": [] }
    })));
    let before = transcript.messages();
    assert_eq!(transcript.try_apply(&delta("a", "/nothing", json!({}))), Effect::None);
    assert_eq!(transcript.try_apply(&delta("unknown", "/steps", metadata.clone())), Effect::None);
    assert_eq!(transcript.messages(), before);
    assert_eq!(transcript.try_apply(&delta("a", "/nothing", metadata)), Effect::WithoutPatch);
    let activity = &json!(transcript.messages())[2];
    assert_eq!(
        (&activity["content"], &activity["metadata"]),
        (&json!({ "steps": [] }), &json!({ "k": 1 }))
    );
    assert_eq!(transcript.try_apply(&delta("a", "/steps", json!({}))), Effect::Whole);
}

#[test]
fn results_stand_behind_their_calls_in_the_order_in_which_they_come() {
    // More than are searched one by one.
    for calls in [3, 40] {
        let mut transcript = started();
        let call = |n| {
            ToolCallEvents::with_id(format!("c{n}"), "f")
                .within(&TextMessage::with_id(format!("a{}", n % 2)))
        };
        (0..calls).for_each(|n| transcript.apply(&call(n).start()));
        (0..calls).rev().for_each(|n| {
            transcript.apply(&ToolCallResult::new(format!("t{n}"), format!("c{n}"), "x").into())
        });
        transcript.apply(&ToolCallResult::new("unknown", "no call", "x").into());
        let results =
            |parity| (0..calls).rev().filter(move |n| n % 2 == parity).map(|n| format!("t{n}"));
        // The message `a1` is of the base.
        let expected =
            ["u1", "a1"].map(str::to_owned).into_iter().chain(results(1)).chain(["a0".to_owned()]);
        let expected: Vec<_> = expected.chain(results(0)).chain(["unknown".to_owned()]).collect();
        assert_eq!(ids(&transcript.messages()), expected);
        let TranscriptChanges { kept, updated, new, .. } = transcript.into_changes();
        assert_eq!((kept, updated.len(), new.len()), (2, 1, calls + 2));
    }
}

#[test]
fn the_cost_of_a_run_is_linear_in_its_events_of_each_kind() {
    type Kind = (&'static str, fn(usize) -> Vec<Event>);
    fn own(n: usize) -> ToolCallEvents {
        ToolCallEvents::with_id(format!("c{n}"), "f")
    }
    fn of_one(n: usize) -> ToolCallEvents {
        own(n).within(&TextMessage::with_id("holder"))
    }
    fn whole(call: &ToolCallEvents) -> [Event; 3] {
        [call.start(), call.delta("{}"), call.end()]
    }
    fn answered(n: usize) -> Event {
        ToolCallResult::new(format!("t{n}"), format!("c{n}"), "x").into()
    }
    fn activity(n: usize) -> Event {
        ActivitySnapshot::new(format!("a{n}"), "PLAN", JsonObject::new()).into()
    }
    let kinds: [Kind; 11] = [
        ("texts", |n| (0..n).flat_map(|_| TextMessage::whole("x")).collect()),
        ("deltas of two texts in turn", |n| {
            let texts = [TextMessage::new(), TextMessage::new()];
            let starts = texts.iter().map(TextMessage::start);
            starts.chain((0..n).map(|n| texts[n % 2].delta("x"))).collect()
        }),
        ("reasoning", |n| (0..n).flat_map(|_| ReasoningSpan::whole("x")).collect()),
        ("steps", |n| {
            (0..n)
                .map(|n| Step::new(format!("s{n}")))
                .flat_map(|step| [step.start(), step.finish()])
                .collect()
        }),
        ("calls with their results", |n| {
            (0..n).flat_map(|n| [&whole(&own(n))[..], &[answered(n)]].concat()).collect()
        }),
        ("calls before their results", |n| {
            (0..n).flat_map(|n| whole(&own(n))).chain((0..n).map(answered)).collect()
        }),
        ("calls of one message before their results", |n| {
            (0..n).flat_map(|n| whole(&of_one(n))).chain((0..n).rev().map(answered)).collect()
        }),
        ("activities", |n| (0..n).map(activity).collect()),
        ("deltas of two activities in turn", |n| {
            let delta =
                |n| ActivityDelta::new(format!("a{}", n % 2), "PLAN", JsonPatch::default()).into();
            [activity(0), activity(1)].into_iter().chain((0..n).map(delta)).collect()
        }),
        ("subagents", |n| {
            let ids = (0..n).map(|n| SubagentRunId::from(format!("s{n}")));
            ids.flat_map(|id| {
                [SubagentStarted::new(id.clone(), "s").into(), SubagentFinished::new(id).into()]
            })
            .collect()
        }),
        ("state", |n| (0..n).map(|n| StateSnapshot::new(json!(n)).into()).collect()),
    ];
    let cost = |events: Vec<Event>| {
        let (mut guard, mut transcript) = (Guard::default(), started());
        let begin = Instant::now();
        for event in events {
            guard.admit(event, &mut |event: &Event| transcript.apply(event)).unwrap();
        }
        begin.elapsed()
    };
    for (kind, events) in kinds {
        let [few, more, many] = [1_000, 10_000, 100_000].map(|number| cost(events(number)));
        // A cost that is quadratic grows by 10,000.
        assert!(
            many < 1_000 * few.max(Duration::from_millis(1)),
            "{kind}: {few:?}, {more:?}, {many:?}"
        );
    }
}
