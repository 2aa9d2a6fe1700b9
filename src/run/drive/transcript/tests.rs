use serde_json::{Value, json};

use super::*;
use crate::{
    agent::emit::{TextMessage, ToolCallEvents},
    protocol::event::{MessagesSnapshot, StateSnapshot, ToolCallResult},
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
    let restated = vec![Message::user("u1", "ONE"), Message::assistant("a1", "two"), Message::user("new", "x")];
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
    let mut transcript = Transcript::new(vec![Message::user("a", "1"), Message::user("b", "1")], Value::Null);
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
    assert_eq!((&activity["content"], &activity["metadata"]), (&json!({ "steps": [] }), &json!({ "k": 1 })));
    assert_eq!(transcript.try_apply(&delta("a", "/steps", json!({}))), Effect::Whole);
}
