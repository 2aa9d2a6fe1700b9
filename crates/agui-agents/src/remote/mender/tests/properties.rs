//! Any order and any part of the events of runs that use their ids again is legal after mending, and no text is lost.

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;

fn id() -> impl Strategy<Value = &'static str> {
    // `u`, `a`, `h` and `c` are in the thread.
    select(vec!["u", "a", "h", "c", "m", "n", "o"])
}

fn owner() -> impl Strategy<Value = Option<&'static str>> {
    select(vec![None, None, None, Some("s"), Some("s2")])
}

/// A part of a legal run: a message, reasoning, a call with its result, a step, an activity, a subagent, or a snapshot.
fn part() -> impl Strategy<Value = Vec<Value>> {
    let any = (0..10_usize, id(), id(), owner(), any::<bool>());
    any.prop_map(|(kind, one, other, owner, flag)| {
        let events = match kind {
            0 => text(one, "text ").to_vec(),
            1 => vec![
                json!({ "type": "REASONING_START", "messageId": one }),
                json!({ "type": "REASONING_MESSAGE_START", "messageId": other, "role": "reasoning" }),
                json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": other, "delta": "thought " }),
                json!({ "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": other, "encryptedValue": "x" }),
                json!({ "type": "REASONING_MESSAGE_END", "messageId": other }),
                json!({ "type": "REASONING_END", "messageId": one }),
            ],
            2 => [&call(one, "pay", flag.then_some(other))[..], &[result(other, one, "5")]].concat(),
            3 => call(one, "look", flag.then_some(other)).to_vec(),
            4 => ["STEP_STARTED", "STEP_FINISHED"].map(|kind| json!({ "type": kind, "stepName": one })).to_vec(),
            5 => vec![
                json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": one, "activityType": "p", "content": {}, "replace": flag }),
                json!({ "type": "ACTIVITY_DELTA", "messageId": one, "activityType": "p", "patch": [] }),
            ],
            6 => ["one ", "two "]
                .map(|delta| json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": (delta == "one " || flag).then_some(one), "delta": delta }))
                .to_vec(),
            7 => vec![
                json!({ "type": "TOOL_CALL_CHUNK", "toolCallId": one, "toolCallName": "pay", "parentMessageId": flag.then_some(other), "delta": "{" }),
                json!({ "type": "TOOL_CALL_CHUNK", "toolCallId": flag.then_some(one), "delta": "}" }),
                result(other, one, "6"),
            ],
            8 => vec![
                json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "parentSubagentRunId": flag.then_some("s2") }),
                json!({ "type": "SUBAGENT_FINISHED", "subagentRunId": "s" }),
            ],
            _ => {
                let own = json!({ "id": one, "role": if flag { "assistant" } else { "reasoning" }, "content": "seen" });
                let with_call = assistant_with_call(if one == other { "x" } else { other }, one, "pay");
                vec![json!({ "type": "MESSAGES_SNAPSHOT", "messages": [own, with_call] })]
            }
        };
        let owned = |mut event: Value| {
            if let Some(owner) = owner.filter(|_| !event["type"].as_str().unwrap().contains("SNAPSHOT")) {
                let is_subagent = event["type"].as_str().unwrap().starts_with("SUBAGENT");
                // Only the start of an item has to name its subagent.
                let is_named = flag || event["type"].as_str().unwrap().ends_with("START");
                if !is_subagent && is_named {
                    event["subagentRunId"] = owner.into();
                }
            }
            event
        };
        events.into_iter().map(owned).collect()
    })
}

fn texts(events: &[Value]) -> String {
    let is_text = |event: &&Value| {
        let kind = event["type"].as_str().unwrap_or_default();
        kind.starts_with("TEXT") || kind.starts_with("REASONING")
    };
    events.iter().filter(is_text).filter_map(|event| event["delta"].as_str()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_order_and_part_of_a_run_with_repeated_ids_is_legal_and_keeps_its_texts(
        parts in vec(part(), 1..7),
        places in vec(0..40_usize, 40),
        kept in vec(prop::bool::weighted(0.85), 40),
        is_shuffled in any::<bool>(),
        is_reply in any::<bool>(),
    ) {
        let mut events: Vec<(usize, Value)> = places.into_iter().zip(parts.concat()).collect();
        if is_shuffled {
            events.sort_by_key(|(place, _)| *place);
        }
        let events: Vec<Value> = events.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|((_, event), _)| event).collect();
        let thread = json!([
            user("u", "Hi"),
            { "id": "h", "role": "reasoning", "content": "Hm", "subagentRunId": "s2" },
            assistant_with_call("a", "c", "pay"),
        ]);
        let input = if is_reply { reply(thread) } else { input(thread) };
        let before = texts(&events);
        prop_assert_eq!(texts(&mended(&input, events.into())), before);
    }
}
