mod properties;

use serde_json::{Value, json};

use super::*;
use agui_protocol::{Message, ResumeEntry, ResumeStatus};
use agui_run::Guard;

fn input(messages: Value) -> RunAgentInput {
    let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
    RunAgentInput::new("t", "r", messages)
}

fn reply(messages: Value) -> RunAgentInput {
    let entry = ResumeEntry::new("i", ResumeStatus::Resolved);
    RunAgentInput { resume: vec![entry], ..input(messages) }
}

/// Mends events, and checks with the guard that they are legal then.
#[track_caller]
fn mended(input: &RunAgentInput, events: Value) -> Vec<Value> {
    let (mut mender, mut guard) = (Mender::new(input, HashSet::new()), Guard::new(input));
    let mut out: Vec<Event> = Vec::new();
    for event in serde_json::from_value::<Vec<Event>>(events).unwrap() {
        for event in mender.mend(event) {
            let problem = format!("{event:?}");
            guard.admit(event, &mut out).unwrap_or_else(|error| panic!("{error}: {problem}"));
        }
    }
    out.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
}

/// Returns events as short texts: the type, the id and the delta.
fn short(events: &[Value]) -> Vec<String> {
    let short = |event: &Value| {
        let id = event.get("toolCallId").or_else(|| event.get("messageId"));
        let text =
            |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = text(event.get("type"));
        format!("{kind} {} {}", text(id), text(event.get("delta"))).trim_end().to_owned()
    };
    events.iter().map(short).collect()
}

fn text(id: &str, delta: &str) -> [Value; 3] {
    [
        json!({ "type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant" }),
        json!({ "type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta }),
        json!({ "type": "TEXT_MESSAGE_END", "messageId": id }),
    ]
}

fn call(id: &str, name: &str, parent: Option<&str>) -> [Value; 3] {
    let mut start = json!({ "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name });
    if let Some(parent) = parent {
        start["parentMessageId"] = parent.into();
    }
    [
        start,
        json!({ "type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "{}" }),
        json!({ "type": "TOOL_CALL_END", "toolCallId": id }),
    ]
}

fn result(message: &str, call: &str, content: &str) -> Value {
    json!({ "type": "TOOL_CALL_RESULT", "messageId": message, "toolCallId": call, "content": content })
}

fn assistant_with_call(id: &str, call: &str, name: &str) -> Value {
    let call =
        json!({ "id": call, "type": "function", "function": { "name": name, "arguments": "{}" } });
    json!({ "id": id, "role": "assistant", "toolCalls": [call] })
}

fn user(id: &str, content: &str) -> Value {
    json!({ "id": id, "role": "user", "content": content })
}

fn concat(parts: &[&[Value]]) -> Value {
    parts.concat().into()
}

#[test]
fn a_legal_stream_passes_unchanged() {
    let events = json!([
        { "type": "STEP_STARTED", "stepName": "s" },
        { "type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant", "name": "Ada" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "x", "metadata": { "k": 1 } },
        { "type": "TEXT_MESSAGE_END", "messageId": "a" },
        { "type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "a" },
        { "type": "TOOL_CALL_END", "toolCallId": "c" },
        result("t", "c", "5"),
        { "type": "REASONING_START", "messageId": "r" },
        { "type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning" },
        { "type": "REASONING_MESSAGE_END", "messageId": "r" },
        { "type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "e" },
        { "type": "REASONING_END", "messageId": "r" },
        { "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "parentToolCallId": "c" },
        { "type": "TEXT_MESSAGE_START", "messageId": "b", "role": "assistant", "subagentRunId": "s" },
        { "type": "TEXT_MESSAGE_CONTENT", "messageId": "b", "delta": "y" },
        { "type": "SUBAGENT_FINISHED", "subagentRunId": "s" },
        { "type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "P", "content": {} },
        { "type": "ACTIVITY_DELTA", "messageId": "p", "activityType": "P", "patch": [] },
        { "type": "STATE_SNAPSHOT", "snapshot": null },
        { "type": "CUSTOM", "name": "n", "value": null },
        { "type": "STEP_FINISHED", "stepName": "s" },
    ]);
    let mut mender = Mender::new(&input(json!([user("u", "Hi")])), HashSet::new());
    let given: Vec<Event> = serde_json::from_value(events).unwrap();
    let mended: Vec<Event> = given.iter().flat_map(|event| mender.mend(event.clone())).collect();
    assert_eq!(mended, given);
}

#[test]
fn a_message_whose_id_the_thread_has_gets_a_new_one() {
    let earlier =
        input(json!([user("u", "Hi"), { "id": "a", "role": "assistant", "content": "Yo" }]));
    let events = mended(&earlier, concat(&[&text("a", "1"), &text("u", "2"), &text("a", "3")]));
    assert_eq!(
        short(&events),
        [
            "TEXT_MESSAGE_START a_agui2",
            "TEXT_MESSAGE_CONTENT a_agui2 1",
            "TEXT_MESSAGE_END a_agui2",
            "TEXT_MESSAGE_START u_agui2",
            "TEXT_MESSAGE_CONTENT u_agui2 2",
            "TEXT_MESSAGE_END u_agui2",
            "TEXT_MESSAGE_START a_agui2",
            "TEXT_MESSAGE_CONTENT a_agui2 3",
            "TEXT_MESSAGE_END a_agui2",
        ],
        "within a run, the endpoint's id means one message"
    );
    let mut mender = Mender::new(&input(json!([])), HashSet::from(["a".to_owned()]));
    let start: Event = serde_json::from_value(text("a", "")[0].clone()).unwrap();
    let events: Vec<_> =
        mender.mend(start).iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    assert_eq!(short(&events), ["TEXT_MESSAGE_START a_agui2"], "retracted ids");
}

#[test]
fn a_call_that_is_announced_again_after_a_reply_is_the_earlier_one() {
    let earlier = || json!([user("u", "Hi"), assistant_with_call("a", "c", "pay")]);
    let announced = concat(&[&call("c", "pay", Some("a")), &[result("t", "c", "paid")]]);
    assert_eq!(short(&mended(&reply(earlier()), announced.clone())), ["TOOL_CALL_RESULT c"]);
    // Without a reply, and for another tool, it is a new call with an id that was used before.
    let events = mended(&input(earlier()), announced);
    let new = [
        "TOOL_CALL_START c_agui2",
        "TOOL_CALL_ARGS c_agui2 {}",
        "TOOL_CALL_END c_agui2",
        "TOOL_CALL_RESULT c_agui2",
    ];
    assert_eq!(short(&events), new);
    assert_eq!(events[0]["parentMessageId"], "a_agui2", "an earlier message gets no new calls");
    let other = concat(&[&call("c", "look", None), &[result("t", "c", "seen")]]);
    assert_eq!(short(&mended(&reply(earlier()), other)), new);
    // Its result is there already.
    let mut done = earlier();
    done.as_array_mut()
        .unwrap()
        .push(json!({ "id": "t", "role": "tool", "toolCallId": "c", "content": "paid" }));
    assert_eq!(mended(&reply(done), json!([result("x", "c", "paid")])), Vec::<Value>::new());
}

#[test]
fn a_call_whose_id_is_used_again_after_its_result_is_a_new_one() {
    let once = |content: &str| [&call("c", "f", None)[..], &[result("r", "c", content)]].concat();
    let events = mended(&input(json!([])), concat(&[&once("1"), &once("2")]));
    assert_eq!(
        short(&events)[4..],
        [
            "TOOL_CALL_START c_agui2",
            "TOOL_CALL_ARGS c_agui2 {}",
            "TOOL_CALL_END c_agui2",
            "TOOL_CALL_RESULT c_agui2"
        ]
    );
    assert_eq!(
        (&events[3]["messageId"], &events[7]["messageId"]),
        (&json!("r"), &json!("r_agui2"))
    );
}

/// Agno asks by a call of its own tool without a result. A tool message is the approval; then Agno announces the call
/// again, and runs it (recorded from agno 3.1.10).
#[test]
fn a_call_that_a_message_of_the_page_approves_is_not_announced_again() {
    let approval = json!({ "id": "p", "role": "tool", "toolCallId": "call-b1f02f72", "content": r#"{"accepted":true}"# });
    let thread =
        json!([user("u", "pay 5"), assistant_with_call("a", "call-b1f02f72", "pay"), approval]);
    let events = json!([
        { "type": "TEXT_MESSAGE_START", "messageId": "b", "role": "assistant" },
        { "type": "TEXT_MESSAGE_END", "messageId": "b" },
        { "type": "TOOL_CALL_START", "toolCallId": "call-b1f02f72", "toolCallName": "pay", "parentMessageId": "b" },
        { "type": "TOOL_CALL_ARGS", "toolCallId": "call-b1f02f72", "delta": "{}" },
        { "type": "TOOL_CALL_END", "toolCallId": "call-b1f02f72" },
        result("call-b1f02f72", "call-b1f02f72", "paid 5"),
    ]);
    let calls = |input: &RunAgentInput| {
        let mut events = short(&mended(input, events.clone()));
        events.retain(|event| event.starts_with("TOOL"));
        events
    };
    let mut input = input(thread);
    assert_eq!(calls(&input), ["TOOL_CALL_RESULT call-b1f02f72"]);
    // A page's call with the id of an earlier one is a new call.
    input.tools = serde_json::from_value(json!([{ "name": "pay", "description": "" }])).unwrap();
    assert_eq!(calls(&input)[0], "TOOL_CALL_START call-b1f02f72_agui2");
}

#[test]
fn messages_go_on_after_their_end_and_begin_without_a_start() {
    let [start, content, end] = text("a", "x");
    let [_, lost, _] = text("b", "y");
    let thought = json!({ "type": "REASONING_MESSAGE_CONTENT", "messageId": "a", "delta": "z" });
    let events = json!([start.clone(), start, content.clone(), end, content, lost, thought]);
    assert_eq!(
        short(&mended(&input(json!([])), events)),
        [
            "TEXT_MESSAGE_START a",
            "TEXT_MESSAGE_CONTENT a x",
            "TEXT_MESSAGE_END a",
            "TEXT_MESSAGE_START a",
            "TEXT_MESSAGE_CONTENT a x",
            "TEXT_MESSAGE_START b",
            "TEXT_MESSAGE_CONTENT b y",
            "REASONING_MESSAGE_START a_agui2",
            "REASONING_MESSAGE_CONTENT a_agui2 z",
        ]
    );
}

#[test]
fn arguments_are_kept_until_their_call_begins_and_reopen_one_that_has_ended() {
    let [start, args, end] = call("c", "f", None);
    let events = json!([args.clone(), start, end, args]);
    assert_eq!(
        short(&mended(&input(json!([])), events)),
        [
            "TOOL_CALL_START c",
            "TOOL_CALL_ARGS c {}",
            "TOOL_CALL_END c",
            "TOOL_CALL_START c",
            "TOOL_CALL_ARGS c {}"
        ]
    );
}

#[test]
fn chunks_without_an_id_continue_the_last_item_of_their_kind() {
    let chunk = |id: Option<&str>, delta: &str| json!({ "type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": delta });
    let custom = json!({ "type": "CUSTOM", "name": "n", "value": 1 });
    let events =
        mended(&input(json!([])), json!([chunk(Some("a"), "1"), custom, chunk(None, "2")]));
    let contents: Vec<_> =
        short(&events).into_iter().filter(|event| event.contains("CONTENT")).collect();
    assert_eq!(contents, ["TEXT_MESSAGE_CONTENT a 1", "TEXT_MESSAGE_CONTENT a 2"]);
    assert_eq!(mended(&input(json!([])), json!([chunk(None, "2")])).len(), 2);
}

#[test]
fn an_activity_under_the_id_of_a_message_gets_a_new_id_and_one_of_the_thread_goes_on() {
    let snapshot = |id: &str| json!({ "type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "p", "content": {} });
    let delta = |id: &str| json!({ "type": "ACTIVITY_DELTA", "messageId": id, "activityType": "p", "patch": [] });
    let earlier = input(
        json!([user("u", "Hi"), { "id": "p_agui2", "role": "activity", "activityType": "p", "content": {} }]),
    );
    let events = mended(&earlier, json!([snapshot("u"), delta("u"), delta("p")]));
    let ids: Vec<_> = events.iter().map(|event| event["messageId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["u_agui2", "u_agui2", "p_agui2"]);
}

#[test]
fn steps_and_subagents_that_begin_again_are_mended() {
    let step = json!({ "type": "STEP_STARTED", "stepName": "s" });
    assert_eq!(
        short(&mended(&input(json!([])), json!([step, step]))),
        ["STEP_STARTED", "STEP_FINISHED", "STEP_STARTED"]
    );
    let started = json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n", "parentSubagentRunId": "gone" });
    let events = mended(&input(json!([])), json!([started, started]));
    assert_eq!(events, [json!({ "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n" })]);
}

fn snapshot_ids(input: &RunAgentInput, before: &[Value], messages: Value) -> Vec<String> {
    let snapshot = json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages });
    let events = mended(input, concat(&[before, &[snapshot]]));
    let messages = events.last().unwrap()["messages"].as_array().unwrap();
    messages.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_snapshot_takes_no_messages_from_the_thread() {
    let said =
        |id: &str, content: &str| json!({ "id": id, "role": "assistant", "content": content });
    let earlier = input(json!([user("u", "Hi"), said("a", "Yo"), user("v", "Go")]));
    let b = || text("b", "Done");
    assert_eq!(
        snapshot_ids(&earlier, &b(), json!([user("v", "Go"), said("b", "Done")])),
        ["u", "a", "v", "b"]
    );
    assert_eq!(snapshot_ids(&earlier, &b(), json!([said("b", "Done")])), ["u", "a", "v", "b"]);
    // A message of this run is the endpoint's to withdraw.
    assert_eq!(
        snapshot_ids(&earlier, &b(), json!([user("u", "Hi"), said("a", "Yo"), user("v", "Go")])),
        ["u", "a", "v"]
    );
    // The endpoint has ids of its own.
    let own = json!([user("1", "Hi"), said("2", "Yo"), user("3", "Go"), said("4", "Done")]);
    assert_eq!(snapshot_ids(&earlier, &b(), own), ["1", "2", "3", "4"]);
    // Ids that repeat: the newest message has the new id.
    assert_eq!(
        snapshot_ids(&earlier, &text("a", "Done"), json!([said("a", "Done")])),
        ["u", "a", "v", "a_agui2"]
    );
    let both = json!([user("u", "Hi"), said("a", "Yo"), user("v", "Go"), said("a", "Done")]);
    assert_eq!(snapshot_ids(&earlier, &text("a", "Done"), both), ["u", "a", "v", "a_agui2"]);
}

#[test]
fn a_snapshot_has_the_ids_that_clients_have() {
    let earlier = input(json!([user("u", "Hi"), assistant_with_call("a_agui2", "c_agui2", "f")]));
    let messages = json!([user("u", "Hi"), assistant_with_call("a", "c", "f"), { "id": "t", "role": "tool", "toolCallId": "c", "content": "" }]);
    let snapshot = json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages });
    // The snapshot shows the call, so that it is not announced again.
    let events =
        mended(&earlier, concat(&[&[snapshot], &call("c", "f", None), &[result("x", "c", "")]]));
    let [event] = &events[..] else { panic!("{events:?}") };
    assert_eq!(event["messages"][1], assistant_with_call("a_agui2", "c_agui2", "f"));
    assert_eq!(event["messages"][2]["toolCallId"], "c_agui2");
}

#[test]
fn a_snapshot_of_the_conversation_withdraws_the_messages_that_it_lacks() {
    let said =
        |id: &str, content: &str| json!({ "id": id, "role": "assistant", "content": content });
    let with_call = assistant_with_call("c1", "c", "f");
    let result = json!({ "id": "t", "role": "tool", "toolCallId": "c", "content": "5" });
    let earlier = input(json!([
        { "id": "s", "role": "system", "content": "Be kind" }, user("u", "Hi"), said("a", "Yo"), with_call, result, user("v", "Go"),
    ]));
    let withdrawn = |messages: Value| {
        let mut mender = Mender::new(&earlier, HashSet::new());
        mender.set_conversation("here".to_owned());
        let snapshot = json!({ "type": "MESSAGES_SNAPSHOT", "messages": messages });
        let [Event::MessagesSnapshot(snapshot)] =
            &mender.mend(serde_json::from_value(snapshot).unwrap())[..]
        else {
            panic!()
        };
        let is_withdrawn = |message: &&Message| message.metadata().is_some();
        assert_eq!(snapshot.messages.iter().count(), 7, "clients keep all messages");
        let withdrawn = snapshot.messages.iter().filter(is_withdrawn);
        withdrawn.map(|message| message.id().to_string()).collect::<Vec<_>>()
    };
    let answer = said("b", "Done");
    assert_eq!(withdrawn(json!([user("v", "Go"), answer])), ["u", "a", "c1", "t"]);
    assert_eq!(withdrawn(json!([user("own", "Go"), answer])), ["u", "a", "c1", "t"]);
    // A call and its result go together.
    assert_eq!(withdrawn(json!([with_call, user("v", "Go"), answer])), ["u", "a"]);
    // It shows the answer of the run, not the conversation.
    assert_eq!(withdrawn(json!([answer])), Vec::<String>::new());
    assert_eq!(withdrawn(json!([user("u", "Hi"), answer])), Vec::<String>::new());
}

#[test]
fn a_subagent_whose_id_an_earlier_run_used_has_a_new_one_unless_the_run_continues_it() {
    let said = |id: &str, owner: &str| json!({ "id": id, "role": "assistant", "content": "Yo", "subagentRunId": owner });
    let earlier =
        || json!([user("u", "Hi"), said("a", "s"), said("b", "s_agui2"), user("v", "Go")]);
    let [mut start, content, end] = text("c", "x");
    start["subagentRunId"] = "s".into();
    let events = json!([
        { "type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n" },
        { "type": "SUBAGENT_STARTED", "subagentRunId": "inner", "name": "n", "parentSubagentRunId": "s" },
        start, content, end,
        { "type": "SUBAGENT_FINISHED", "subagentRunId": "inner" },
        { "type": "SUBAGENT_FINISHED", "subagentRunId": "s" },
        { "type": "MESSAGES_SNAPSHOT", "messages": [user("u", "Hi"), said("a", "s"), said("b", "s"), user("v", "Go"), said("c", "s")] },
    ]);
    let owners = |input: &RunAgentInput| {
        let events = mended(input, events.clone());
        let snapshot = events.last().unwrap()["messages"].as_array().unwrap().clone();
        let mut owners: Vec<_> = events
            .iter()
            .map(|event| event["subagentRunId"].clone())
            .filter(|id| *id != json!(null))
            .collect();
        owners.dedup();
        assert_eq!(events[1]["parentSubagentRunId"], owners[0]);
        let of_messages: Vec<_> =
            snapshot.iter().filter_map(|message| message.get("subagentRunId").cloned()).collect();
        (owners, of_messages)
    };
    let (new, again) = ("s_agui3", "s_agui2");
    let (all, of_messages) = owners(&input(earlier()));
    assert_eq!(all, [new, "inner", new, "inner", new]);
    assert_eq!(of_messages, ["s", "s_agui2", new]);
    // A reply continues the newest subagent with the id.
    let (all, of_messages) = owners(&reply(earlier()));
    assert_eq!((all[0].as_str(), of_messages.last().unwrap().as_str()), (Some(again), Some(again)));
}
