//! Hand-written streams: one for each violation of the protocol, and legal ones that are unusual.

use agui_server::protocol::{
    AssistantMessage, Event, Interrupt, JsonObject, Message, MessageContent, PatchKind,
    PatchOperation, RunAgentInput, SubagentRunId, TokenUsage, ToolCall, ToolDefinition,
    ToolMessage, event::*,
};
use serde_json::{Value, json};

use super::framed;

type Case = (&'static str, RunAgentInput, Vec<Event>);

/// The input of all these streams. The functions after it create one event each.
fn input() -> RunAgentInput {
    let messages = vec![Message::user("u1", "Hello"), calling("a1", "earlier")];
    let mut input = RunAgentInput::new("thread", "run", messages);
    let (name, description) = ("confirm".to_owned(), "Asks the person".to_owned());
    input.tools.push(ToolDefinition { name, description, parameters: None, metadata: None });
    input
}

fn text(id: &str) -> Event {
    TextMessageStart::new(id).into()
}
fn text_as(id: &str, role: TextMessageRole) -> Event {
    TextMessageStart { role: Some(role), ..TextMessageStart::new(id) }.into()
}
fn text_by(id: &str, name: &str) -> Event {
    TextMessageStart { name: Some(name.to_owned()), ..TextMessageStart::new(id) }.into()
}
fn named_user(id: &str, name: &str) -> Event {
    let role = Some(TextMessageRole::User);
    TextMessageStart { role, name: Some(name.to_owned()), ..TextMessageStart::new(id) }.into()
}
fn text_without_role(id: &str) -> Event {
    TextMessageStart { role: None, ..TextMessageStart::new(id) }.into()
}
fn delta(id: &str) -> Event {
    TextMessageContent::new(id, "word").into()
}
fn end(id: &str) -> Event {
    TextMessageEnd::new(id).into()
}
fn call(id: &str, name: &str) -> Event {
    ToolCallStart::new(id, name).into()
}
fn call_in(id: &str, parent: &str) -> Event {
    ToolCallStart { parent_message_id: Some(parent.into()), ..ToolCallStart::new(id, "own") }.into()
}
fn args(id: &str) -> Event {
    ToolCallArgs::new(id, "{}").into()
}
fn call_end(id: &str) -> Event {
    ToolCallEnd::new(id).into()
}
fn result(id: &str, call: &str) -> Event {
    ToolCallResult::new(id, call, "done").into()
}
fn span(id: &str) -> Event {
    ReasoningStart::new(id).into()
}
fn span_end(id: &str) -> Event {
    ReasoningEnd::new(id).into()
}
fn thought(id: &str) -> Event {
    ReasoningMessageStart::new(id).into()
}
fn thought_delta(id: &str) -> Event {
    ReasoningMessageContent::new(id, "hm").into()
}
fn thought_end(id: &str) -> Event {
    ReasoningMessageEnd::new(id).into()
}
fn step(name: &str) -> Event {
    StepStarted::new(name).into()
}
fn step_end(name: &str) -> Event {
    StepFinished::new(name).into()
}
fn subagent(id: &str) -> Event {
    SubagentStarted::new(id, "researcher").into()
}
fn subagent_of(id: &str, parent: &str) -> Event {
    SubagentStarted {
        parent_subagent_run_id: Some(parent.into()),
        ..SubagentStarted::new(id, "researcher")
    }
    .into()
}
fn subagent_end(id: &str) -> Event {
    SubagentFinished::new(id).into()
}
fn activity(id: &str) -> Event {
    ActivitySnapshot::new(id, "search", object(json!({ "found": 0 }))).into()
}
fn activity_kept(id: &str) -> Event {
    let snapshot = ActivitySnapshot::new(id, "search", JsonObject::new());
    ActivitySnapshot { replace: Some(false), ..snapshot }.into()
}
fn activity_delta(id: &str, operation: PatchOperation) -> Event {
    ActivityDelta::new(id, "search", vec![operation]).into()
}
fn found(id: &str) -> Event {
    activity_delta(id, PatchOperation::replace("/found", 1))
}
fn sealed(subtype: EncryptedValueSubtype, entity: &str) -> Event {
    ReasoningEncryptedValue::new(subtype, entity, "sealed").into()
}
fn snapshot(messages: Vec<Message>) -> Event {
    MessagesSnapshot::new(messages).into()
}
fn state(operation: PatchOperation) -> Event {
    StateDelta::new(vec![operation]).into()
}
/// An assistant message with a call.
fn calling(id: &str, call: &str) -> Message {
    let tool_calls = Some(vec![ToolCall::new(call, "own", "{}")]);
    Message::Assistant(AssistantMessage { tool_calls, ..AssistantMessage::new(id) })
}
fn answer(id: &str, call: &str) -> Message {
    Message::Tool(ToolMessage {
        id: id.into(),
        content: MessageContent::from("yes"),
        tool_call_id: call.into(),
        error: None,
        encrypted_value: None,
        encrypted_value_type: None,
        metadata: None,
        subagent_run_id: None,
    })
}
fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

/// Attributes the event to a subagent.
fn by(owner: &str, event: Event) -> Event {
    event.attributed_to(Some(SubagentRunId::from(owner)))
}

fn interrupt(ids: &[&str]) -> RunOutcome {
    let interrupt = |id: &&str| Interrupt { id: (*id).into(), ..Interrupt::new("input_required") };
    RunOutcome::Interrupt { interrupts: ids.iter().map(interrupt).collect() }
}
fn pending(ids: &[&str]) -> RunOutcome {
    RunOutcome::Success { pending_tool_call_ids: ids.iter().map(|id| (*id).into()).collect() }
}

/// A successful run with these events.
fn run(name: &'static str, events: Vec<Event>) -> Case {
    ended(name, events, RunOutcome::success())
}
fn ended(name: &'static str, events: Vec<Event>, outcome: RunOutcome) -> Case {
    let stream = framed(&input(), &events, outcome);
    (name, input(), stream)
}
/// A successful run whose whole stream is changed by `alter`.
fn altered(name: &'static str, events: Vec<Event>, alter: impl FnOnce(&mut Vec<Event>)) -> Case {
    let (name, input, mut stream) = run(name, events);
    alter(&mut stream);
    (name, input, stream)
}

pub(crate) fn illegal_streams() -> Vec<Case> {
    use EncryptedValueSubtype::{Message as OfMessage, ToolCall as OfCall};
    let message = || vec![text("m"), delta("m"), end("m")];
    let failed = || Event::from(RunError::new("code", "message"));
    let user = TextMessageRole::User;
    let spoken_by = |id: &str, owner: &str| {
        let mut message = Message::assistant(id, "Hi");
        if let Message::Assistant(assistant) = &mut message {
            assistant.subagent_run_id = Some(owner.into());
        }
        message
    };
    let usage = || vec![TokenUsage { input_tokens: Some(1), ..Default::default() }; 2];
    vec![
        // the frame
        altered("no event at all", vec![], Vec::clear),
        altered("nothing after the start", vec![], |s| drop(s.pop())),
        altered("no RUN_STARTED", message(), |s| drop(s.remove(0))),
        altered("no terminal event", message(), |s| drop(s.pop())),
        altered("RUN_STARTED twice", message(), |s| s.insert(1, s[0].clone())),
        altered("RUN_FINISHED twice", message(), |s| s.push(s[s.len() - 1].clone())),
        altered("an event after RUN_FINISHED", message(), |s| s.push(step("late"))),
        altered("an event after RUN_ERROR", message(), |s| s.extend([failed(), step("late")])),
        altered("RUN_ERROR and then RUN_FINISHED", vec![], |s| s.insert(1, failed())),
        altered("RUN_STARTED of another run", vec![], |s| {
            s[0] = RunStarted::new("thread".into(), "other".into()).into()
        }),
        altered("RUN_STARTED of another thread", vec![], |s| {
            s[0] = RunStarted::new("other".into(), "run".into()).into()
        }),
        altered("RUN_STARTED without a version", vec![], |s| {
            let Event::RunStarted(started) = &mut s[0] else { unreachable!() };
            started.protocol_version = None;
        }),
        altered("RUN_FINISHED of another run", vec![], |s| {
            s[1] = RunFinished::new("thread".into(), "other".into(), RunOutcome::success()).into();
        }),
        // text messages
        run("a delta of a message that was never opened", vec![delta("m")]),
        run("an end of a message that was never opened", vec![end("m")]),
        run("a message opened twice", vec![text("m"), text("m"), end("m")]),
        run("a message closed twice", vec![text("m"), end("m"), end("m")]),
        run("a delta after the end", vec![text("m"), end("m"), delta("m")]),
        run("a message left open", vec![text("m")]),
        ended("a message left open by a cancelled run", vec![text("m")], RunOutcome::Cancelled),
        run(
            "a message reopened under another role",
            vec![text("m"), end("m"), text_as("m", user), end("m")],
        ),
        run(
            "a message reopened under another name",
            vec![text("m"), end("m"), text_by("m", "Ann"), end("m")],
        ),
        run(
            "a message reopened by another owner",
            vec![text("m"), end("m"), by("s", text("m")), end("m")],
        ),
        run(
            "a message reopened without its role",
            vec![text_as("m", user), end("m"), text_without_role("m"), end("m")],
        ),
        run("the history's message under another role", vec![text("u1"), end("u1")]),
        run("the history's message under another name", vec![named_user("u1", "Ann"), end("u1")]),
        run(
            "a snapshot's message under another name",
            vec![snapshot(vec![calling("a2", "c")]), text_by("a2", "Ann"), end("a2")],
        ),
        run(
            "the history's message by another owner",
            vec![by("s", text_as("u1", user)), end("u1")],
        ),
        run("a delta of another owner", vec![text("m"), by("s", delta("m")), end("m")]),
        run("an end of another owner", vec![by("s", text("m")), by("t", end("m"))]),
        run("an owner that is the empty text is not the parent", vec![text("m"), by("", end("m"))]),
        run(
            "a chunk",
            vec![TextMessageChunk { message_id: Some("m".into()), ..Default::default() }.into()],
        ),
        // tool calls
        run("arguments of a call that was never opened", vec![args("c")]),
        ended(
            "a call opened twice",
            vec![call("c", "own"), call("c", "own"), call_end("c")],
            pending(&["c"]),
        ),
        ended(
            "a call of an earlier run made again",
            vec![call("earlier", "own"), call_end("earlier")],
            pending(&["earlier"]),
        ),
        ended("a call left open", vec![call("c", "own")], pending(&["c"])),
        ended(
            "a call reopened under another name",
            vec![call("c", "own"), call_end("c"), call("c", "confirm"), call_end("c")],
            pending(&["c"]),
        ),
        ended(
            "a call reopened within another message",
            vec![call("c", "own"), call_end("c"), call_in("c", "m"), call_end("c")],
            pending(&["c"]),
        ),
        ended(
            "a call of another owner than its message",
            vec![text("m"), by("s", call_in("c", "m")), call_end("c"), end("m")],
            pending(&["c"]),
        ),
        ended(
            "arguments of another owner than the message's",
            vec![
                by("s", text("m")),
                call_in("c", "m"),
                by("t", args("c")),
                call_end("c"),
                end("m"),
            ],
            pending(&["c"]),
        ),
        ended(
            "a message of another owner than its call",
            vec![by("s", call_in("c", "m")), call_end("c"), text("m"), end("m")],
            pending(&["c"]),
        ),
        ended(
            "a call within a person's message",
            vec![call_in("c", "u1"), call_end("c")],
            pending(&["c"]),
        ),
        ended(
            "a call within a reasoning message",
            vec![thought("r"), thought_end("r"), call_in("c", "r"), call_end("c")],
            pending(&["c"]),
        ),
        run("a result under a message's id", [message(), vec![result("m", "c")]].concat()),
        run("two results under one id", vec![result("r", "c"), result("r", "d")]),
        run("a result that is continued as a text", vec![result("r", "c"), text("r"), end("r")]),
        ended(
            "a call of another owner than the history's message",
            vec![by("s", call_in("c", "a1")), call_end("c")],
            pending(&["c"]),
        ),
        // pending calls
        run("a pending call that is not named", vec![call("c", "confirm"), call_end("c")]),
        ended(
            "an answered call that is named",
            vec![call("c", "own"), call_end("c"), result("r", "c")],
            pending(&["c"]),
        ),
        ended("a pending call that was not made", vec![], pending(&["c"])),
        ended(
            "pending calls out of order",
            vec![call("c", "own"), call_end("c"), call("d", "own"), call_end("d")],
            pending(&["d", "c"]),
        ),
        ended(
            "a call that is named though its answer came first",
            vec![result("r", "c"), call("c", "own"), call_end("c")],
            pending(&["c"]),
        ),
        altered("a pending call and no outcome", vec![call("c", "confirm"), call_end("c")], |s| {
            let Some(Event::RunFinished(finished)) = s.last_mut() else { unreachable!() };
            finished.outcome = None;
        }),
        // interrupts and usage
        ended("an interrupt outcome without interrupts", vec![], interrupt(&[])),
        ended("two interrupts of one id", vec![], interrupt(&["i", "j", "i"])),
        altered("usage of one model in two entries", vec![], |s| {
            let Some(Event::RunFinished(finished)) = s.last_mut() else { unreachable!() };
            finished.usage = usage();
        }),
        // reasoning
        run("a span opened twice", vec![span("r"), span("r"), span_end("r")]),
        run("a span left open", vec![span("r")]),
        run("a span closed by another owner", vec![span("r"), by("s", span_end("r"))]),
        run("a span is no message", vec![span("r"), thought_delta("r"), span_end("r")]),
        run("a message is no span", vec![thought("r"), span_end("r"), thought_end("r")]),
        run("a reasoning message left open", vec![thought("r")]),
        run(
            "a reasoning message closed twice",
            vec![thought("r"), thought_end("r"), thought_end("r")],
        ),
        run("a reasoning message closed as a text", vec![thought("r"), end("r")]),
        run("a text closed as a reasoning message", vec![text("m"), thought_end("m")]),
        run(
            "a text's id for a reasoning message",
            [message(), vec![thought("m"), thought_end("m")]].concat(),
        ),
        run(
            "reasoning of another owner",
            vec![by("s", thought("r")), by("t", thought_delta("r")), thought_end("r")],
        ),
        run(
            "reasoning that continues as its span's owner",
            vec![
                by("s", span("r")),
                thought("r"),
                by("s", thought_delta("r")),
                thought_end("r"),
                span_end("r"),
            ],
        ),
        run(
            "an encrypted value of another owner's earlier message",
            vec![by("s", sealed(OfMessage, "u1"))],
        ),
        run(
            "an encrypted value of another owner's earlier call",
            vec![by("s", sealed(OfCall, "earlier"))],
        ),
        run(
            "an encrypted value of another owner's call from a snapshot",
            vec![snapshot(vec![calling("a2", "c")]), by("s", sealed(OfCall, "c"))],
        ),
        run(
            "an encrypted value of another owner's message",
            vec![thought("r"), thought_end("r"), by("s", sealed(OfMessage, "r"))],
        ),
        ended(
            "an encrypted value of another owner's call",
            vec![call("c", "own"), call_end("c"), by("s", sealed(OfCall, "c"))],
            pending(&["c"]),
        ),
        // steps
        run("a step opened twice", vec![step("a"), step("a"), step_end("a")]),
        run("a step that was never opened", vec![step_end("a")]),
        run("a step left open", vec![step("a")]),
        run("a step closed by another owner", vec![step("a"), by("s", step_end("a"))]),
        // subagents
        run("a subagent left open", vec![subagent("s")]),
        run("a subagent announced twice", vec![subagent("s"), subagent("s"), subagent_end("s")]),
        run(
            "a subagent's id used again",
            vec![subagent("s"), subagent_end("s"), subagent("s"), subagent_end("s")],
        ),
        run("a subagent closed twice", vec![subagent("s"), subagent_end("s"), subagent_end("s")]),
        run("a subagent that was never announced ends", vec![subagent_end("s")]),
        run(
            "a subagent announced after its work",
            vec![by("s", text("m")), end("m"), subagent("s"), subagent_end("s")],
        ),
        run("a subagent of an unknown parent", vec![subagent_of("s", "t"), subagent_end("s")]),
        run("a subagent that is its own parent", vec![subagent_of("s", "s"), subagent_end("s")]),
        // activities
        run("a delta of an activity that was never set", vec![found("a")]),
        run("a delta of a message that is no activity", [message(), vec![found("m")]].concat()),
        run("an activity in a text's place", [message(), vec![activity("m")]].concat()),
        run("a text in an activity's place", [vec![activity("m")], message()].concat()),
        run("an activity amended by another owner", vec![activity("a"), by("s", found("a"))]),
        run(
            "an activity amended by its former owner",
            vec![by("s", activity("a")), activity("a"), by("s", found("a"))],
        ),
        run(
            "an activity kept by another owner",
            vec![by("s", activity("a")), by("t", activity_kept("a"))],
        ),
        run(
            "an activity that becomes a list",
            vec![activity("a"), activity_delta("a", PatchOperation::replace("", json!([])))],
        ),
        run(
            "an activity that becomes null",
            vec![activity("a"), activity_delta("a", PatchOperation::remove(""))],
        ),
        // snapshots and patches
        run(
            "a snapshot with one message twice",
            vec![snapshot(vec![Message::user("u1", "a"), Message::user("u1", "b")])],
        ),
        run(
            "a snapshot with one call twice",
            vec![snapshot(vec![calling("a2", "c"), calling("a3", "c")])],
        ),
        run(
            "a snapshot that changes the role of an open message",
            vec![text("m"), snapshot(vec![Message::user("m", "Hello")]), end("m")],
        ),
        run(
            "a snapshot's message continued in the role it had before",
            vec![
                snapshot(vec![Message::assistant("u1", "Hello")]),
                text_as("u1", TextMessageRole::User),
                end("u1"),
            ],
        ),
        run(
            "a value moved into itself",
            vec![state(PatchKind::Move { from: "/a".to_owned(), path: "/a/b".to_owned() }.into())],
        ),
        run(
            "the whole moved into itself",
            vec![state(PatchKind::Move { from: String::new(), path: "/a".to_owned() }.into())],
        ),
        run(
            "a delta of the owner before the snapshot",
            vec![
                by("s", text("m")),
                snapshot(vec![spoken_by("m", "t")]),
                by("s", delta("m")),
                end("m"),
            ],
        ),
        run("a path without a slash", vec![state(PatchOperation::remove("a"))]),
        run("a path with a stray tilde", vec![state(PatchOperation::add("/a~2", 1))]),
        run(
            "a path that ends in a tilde",
            vec![activity("a"), activity_delta("a", PatchOperation::remove("/a~"))],
        ),
        run(
            "a bad place to move from",
            vec![state(PatchKind::Move { from: "a".to_owned(), path: "/b".to_owned() }.into())],
        ),
    ]
}

pub(crate) fn unusual_legal_streams() -> Vec<Case> {
    let message = || vec![text("m"), delta("m"), end("m")];
    let open_everywhere =
        || vec![text("m"), span("r"), thought("r"), subagent("s"), by("s", step("a"))];
    vec![
        run("an empty run", vec![]),
        run("a message without a delta", vec![text("m"), end("m")]),
        run("a message reopened", [message(), message()].concat()),
        run(
            "an absent role is the assistant's",
            [message(), vec![text_without_role("m"), end("m")]].concat(),
        ),
        run(
            "the history's message reopened",
            vec![text_as("u1", TextMessageRole::User), end("u1")],
        ),
        run(
            "unattributed reopenings",
            vec![by("s", text_by("m", "Ann")), end("m"), text("m"), by("s", delta("m")), end("m")],
        ),
        run(
            "a call reopened without its parent",
            vec![
                call_in("c", "m"),
                call_end("c"),
                call("c", "own"),
                call_end("c"),
                result("r", "c"),
            ],
        ),
        run("a call of an earlier run answered", vec![result("r", "earlier")]),
        run("unattributed continuations", vec![by("s", text("m")), delta("m"), end("m")]),
        run(
            "a span and a message of one id",
            vec![span("r"), thought("r"), span_end("r"), thought_end("r")],
        ),
        run("a span under a text's id", [message(), vec![span("m"), span_end("m")]].concat()),
        run(
            "one step's name, two owners",
            vec![step("a"), by("s", step("a")), step_end("a"), by("s", step_end("a"))],
        ),
        run("a subagent that is never announced", vec![by("s", text("m")), by("s", end("m"))]),
        run(
            "a message of a subagent after its end",
            vec![subagent("s"), subagent_end("s"), by("s", text("m")), end("m")],
        ),
        run(
            "a subagent of a finished parent",
            vec![subagent("s"), subagent_end("s"), subagent_of("t", "s"), subagent_end("t")],
        ),
        run("an empty id", vec![text(""), delta(""), end("")]),
        run(
            "a call within a message that is not known",
            vec![call_in("c", "m"), call_end("c"), result("r", "c"), text("m"), end("m")],
        ),
        run(
            "a call that inherits its owner",
            vec![
                by("s", text("m")),
                end("m"),
                call_in("c", "m"),
                by("s", args("c")),
                call_end("c"),
                result("r", "c"),
            ],
        ),
        run("a result of an unknown call", vec![result("r", "unknown")]),
        run(
            "an answer by a tool that has the name of one of the application's",
            vec![call("c", "confirm"), call_end("c"), result("r", "c")],
        ),
        ended(
            "a snapshot that brings an answer",
            vec![call("c", "confirm"), call_end("c"), snapshot(vec![answer("r", "c")])],
            pending(&["c"]),
        ),
        run(
            "a snapshot that changes a role",
            vec![snapshot(vec![Message::assistant("u1", "Hello")]), text("u1"), end("u1")],
        ),
        run(
            "an encrypted value of an unknown message",
            vec![by("s", sealed(EncryptedValueSubtype::Message, "unknown"))],
        ),
        ended(
            "calls that are the application's to answer",
            vec![call("c", "confirm"), call_end("c"), call("d", "own"), call_end("d")],
            pending(&["c", "d"]),
        ),
        ended(
            "an interrupted run names no pending calls",
            vec![call("c", "own"), call_end("c")],
            interrupt(&["i"]),
        ),
        run("the application's own answer restated", vec![snapshot(vec![answer("r", "earlier")])]),
        run("an activity taken over", vec![by("s", activity("a")), activity("a"), found("a")]),
        run(
            "an activity kept, without attribution",
            vec![by("s", activity("a")), activity_kept("a"), by("s", found("a"))],
        ),
        run(
            "a patch that does not apply",
            vec![activity("a"), activity_delta("a", PatchOperation::remove("/missing"))],
        ),
        run(
            "an illegal operation after one that does not apply",
            vec![
                activity("a"),
                ActivityDelta::new(
                    "a",
                    "search",
                    vec![PatchOperation::remove("/missing"), PatchOperation::replace("", 1)],
                )
                .into(),
            ],
        ),
        run(
            "a null that is data",
            vec![
                StateSnapshot::new(Value::Null).into(),
                Custom::new("com.example", Value::Null).into(),
            ],
        ),
        altered("a run that fails with everything open", open_everywhere(), |s| {
            s.pop();
            s.push(RunError::new("code", "message").into());
        }),
    ]
}
