//! Random inputs, and random events with random content.

use agui_server::protocol::{
    AssistantMessage, ContentPart, DeveloperMessage, Event, EventType, Interrupt, Message,
    MessageContent, PartSource, PatchKind, PatchOperation, ReasoningMessage, ResumeEntry,
    ResumeStatus, RunAgentInput, SystemMessage, TokenUsage, ToolCall, ToolDefinition, ToolMessage,
    UserMessage, event::*,
};
use serde_json::Value;

use super::dice::Dice;

/// Returns a valid input: its message ids are unique.
pub(super) fn input(dice: &mut Dice<'_>) -> RunAgentInput {
    let messages = messages(dice, &["a", "b", "h", "c"]);
    let mut input = RunAgentInput::new("thread", "run", messages);
    for name in ["search", "confirm"] {
        if dice.chance(2) {
            let (name, description) = (name.to_owned(), "A tool of the application".to_owned());
            input.tools.push(ToolDefinition {
                name,
                description,
                parameters: None,
                metadata: None,
            });
        }
    }
    input.state = dice.maybe(2, |dice| Value::Object(dice.object()));
    input.parent_run_id = dice.maybe(4, |_| "parent".into());
    if dice.chance(6) {
        let (interrupt_id, status) = ("i".into(), ResumeStatus::Resolved);
        input.resume.push(ResumeEntry {
            interrupt_id,
            status,
            payload: Some(dice.json()).filter(|json| !json.is_null()),
            metadata: None,
        });
    }
    input
}

/// Returns messages with the first of `ids`: none of them, some, or all.
fn messages(dice: &mut Dice<'_>, ids: &[&str]) -> Vec<Message> {
    let mut calls = ["x", "y"].into_iter();
    let count = dice.below(ids.len() + 1);
    ids[..count].iter().map(|id| message(id, dice, &mut calls)).collect()
}

fn message<'a>(
    id: &str,
    dice: &mut Dice<'_>,
    calls: &mut impl Iterator<Item = &'a str>,
) -> Message {
    let id = id.into();
    let metadata = dice.maybe(4, Dice::object).map(Into::into);
    let subagent_run_id = dice.maybe(6, |_| "s".into());
    // The reference client of these streams knows AG-UI 1.0, which has no types of values.
    let (encrypted_value, encrypted_value_type) = (dice.maybe(8, |_| "sealed".to_owned()), None);
    let (name, content) = (None, dice.text().to_owned());
    match dice.below(9) {
        0 | 1 => {
            let content = text_or_parts(dice);
            Message::User(UserMessage {
                id,
                content,
                name,
                encrypted_value,
                encrypted_value_type,
                metadata,
                subagent_run_id,
            })
        }
        2..=4 => {
            let call = dice.maybe(2, |dice| (dice.pick(&["search", "own"]), dice.text()));
            let call = call
                .and_then(|(name, arguments)| Some(ToolCall::new(calls.next()?, name, arguments)));
            Message::Assistant(AssistantMessage {
                content: Some(content).filter(|_| call.is_none()),
                tool_calls: call.map(|call| vec![call]),
                encrypted_value,
                metadata,
                subagent_run_id,
                ..AssistantMessage::new(id)
            })
        }
        5 => {
            let tool_call_id = dice.call_id().into();
            let (content, error) = (text_or_parts(dice), dice.maybe(3, |_| "failed".to_owned()));
            Message::Tool(ToolMessage {
                id,
                content,
                tool_call_id,
                error,
                encrypted_value,
                encrypted_value_type,
                metadata,
                subagent_run_id,
            })
        }
        6 => Message::Reasoning(ReasoningMessage {
            id,
            content,
            encrypted_value,
            encrypted_value_type,
            metadata,
            subagent_run_id,
        }),
        7 => Message::System(SystemMessage {
            id,
            content,
            name,
            encrypted_value,
            encrypted_value_type,
            metadata,
            subagent_run_id,
        }),
        _ => Message::Developer(DeveloperMessage {
            id,
            content,
            name: Some("Dee".to_owned()),
            encrypted_value,
            encrypted_value_type,
            metadata,
            subagent_run_id,
        }),
    }
}

fn text_or_parts(dice: &mut Dice<'_>) -> MessageContent {
    match dice.below(3) {
        0 | 1 => dice.text().into(),
        _ => {
            let (value, mime_type) = ("https://example.com/cat.png".to_owned(), None);
            vec![
                ContentPart::text(dice.text()),
                ContentPart::image(PartSource::Url { value, mime_type }),
            ]
            .into()
        }
    }
}

/// Returns an event of any type.
pub(super) fn event(dice: &mut Dice<'_>) -> Event {
    let kind = dice.pick(EventType::ALL);
    let owner = dice.owner();
    let mut event = event_of_type(kind, dice).attributed_to(owner);
    let base = event.base_mut();
    base.set_metadata(dice.maybe(4, Dice::object).map(Into::into));
    base.set_timestamp(dice.maybe(8, |_| 1_700_000_000_000));
    base.set_raw_event(dice.maybe(8, Dice::json));
    event
}

fn event_of_type(kind: EventType, dice: &mut Dice<'_>) -> Event {
    match kind {
        EventType::TextMessageStart => {
            let (role, name) =
                (text_role(dice), dice.maybe(6, |dice| dice.pick(&["Ann", "Dee"]).to_owned()));
            TextMessageStart { role, name, ..TextMessageStart::new(dice.id()) }.into()
        }
        EventType::TextMessageContent => TextMessageContent::new(dice.id(), dice.text()).into(),
        EventType::TextMessageEnd => TextMessageEnd::new(dice.id()).into(),
        EventType::TextMessageChunk => TextMessageChunk {
            message_id: dice.maybe(2, |dice| dice.id().into()),
            role: text_role(dice).filter(|_| dice.chance(2)),
            delta: dice.maybe(2, |dice| dice.text().to_owned()),
            name: dice.maybe(6, |dice| dice.pick(&["Ann", "Dee"]).to_owned()),
            ..Default::default()
        }
        .into(),
        EventType::ToolCallStart => {
            let parent_message_id = dice.maybe(2, |dice| dice.id().into());
            let name = dice.pick(&["search", "confirm", "own"]);
            ToolCallStart { parent_message_id, ..ToolCallStart::new(dice.call_id(), name) }.into()
        }
        EventType::ToolCallArgs => ToolCallArgs::new(dice.call_id(), dice.text()).into(),
        EventType::ToolCallEnd => ToolCallEnd::new(dice.call_id()).into(),
        EventType::ToolCallChunk => ToolCallChunk {
            tool_call_id: dice.maybe(2, |dice| dice.call_id().into()),
            tool_call_name: dice.maybe(2, |dice| dice.pick(&["search", "own"]).to_owned()),
            parent_message_id: dice.maybe(4, |dice| dice.id().into()),
            delta: dice.maybe(2, |dice| dice.text().to_owned()),
            ..Default::default()
        }
        .into(),
        EventType::ToolCallResult => {
            ToolCallResult::new(dice.id(), dice.call_id(), text_or_parts(dice)).into()
        }
        EventType::StateSnapshot => StateSnapshot::new(dice.json()).into(),
        EventType::StateDelta => StateDelta::new(patch(dice)).into(),
        EventType::MessagesSnapshot => {
            let mut messages = messages(dice, &["a", "b", "c", "d"]);
            if dice.chance(4) {
                // Illegal: the same message twice.
                messages.extend(messages.first().cloned());
            }
            MessagesSnapshot::new(messages).into()
        }
        EventType::ActivitySnapshot => {
            let replace = dice.pick(&[None, None, Some(false), Some(true)]);
            ActivitySnapshot {
                replace,
                ..ActivitySnapshot::new(dice.id(), "search", dice.object())
            }
            .into()
        }
        EventType::ActivityDelta => {
            ActivityDelta::new(dice.id(), dice.pick(&["search", "plan"]), patch(dice)).into()
        }
        EventType::Raw => {
            Raw { source: dice.maybe(2, |_| "openai".to_owned()), ..Raw::new(dice.json()) }.into()
        }
        EventType::Custom => Custom::new("com.example.event", dice.json()).into(),
        EventType::RunStarted => RunStarted::new(dice.id().into(), dice.id().into()).into(),
        EventType::RunFinished => run_finished(dice),
        EventType::RunError => RunError::new("out_of_luck", dice.text()).into(),
        EventType::StepStarted => StepStarted::new(dice.pick(&["plan", "act"])).into(),
        EventType::StepFinished => StepFinished::new(dice.pick(&["plan", "act"])).into(),
        EventType::ReasoningStart => ReasoningStart::new(dice.id()).into(),
        EventType::ReasoningMessageStart => ReasoningMessageStart::new(dice.id()).into(),
        EventType::ReasoningMessageContent => {
            ReasoningMessageContent::new(dice.id(), dice.text()).into()
        }
        EventType::ReasoningMessageEnd => ReasoningMessageEnd::new(dice.id()).into(),
        EventType::ReasoningMessageChunk => ReasoningMessageChunk {
            message_id: dice.maybe(2, |dice| dice.id().into()),
            delta: dice.maybe(2, |dice| dice.text().to_owned()),
            ..Default::default()
        }
        .into(),
        EventType::ReasoningEnd => ReasoningEnd::new(dice.id()).into(),
        EventType::ReasoningEncryptedValue => match dice.below(2) {
            0 => ReasoningEncryptedValue::new(EncryptedValueSubtype::Message, dice.id(), "sealed")
                .into(),
            _ => ReasoningEncryptedValue::new(
                EncryptedValueSubtype::ToolCall,
                dice.call_id(),
                "sealed",
            )
            .into(),
        },
        EventType::SubagentStarted => {
            let mut started = SubagentStarted::new(subagent(dice), "researcher");
            started.parent_subagent_run_id = dice.maybe(3, |dice| subagent(dice).into());
            started.parent_tool_call_id = dice.maybe(4, |dice| dice.call_id().into());
            started.into()
        }
        EventType::SubagentFinished => {
            let outcome = match dice.below(4) {
                0 | 1 => None,
                2 => Some(SubagentOutcome::Success),
                _ => Some(SubagentOutcome::Suspended { interrupt_ids: vec!["i".into()] }),
            };
            let result = dice.maybe(3, Dice::json);
            SubagentFinished { outcome, result, ..SubagentFinished::new(subagent(dice)) }.into()
        }
        EventType::SubagentError => SubagentError::new(subagent(dice), "no luck").into(),
    }
}

fn subagent(dice: &mut Dice<'_>) -> &'static str {
    dice.pick(&["s", "s1", "s2", ""])
}

fn text_role(dice: &mut Dice<'_>) -> Option<TextMessageRole> {
    let (assistant, user) = (Some(TextMessageRole::Assistant), Some(TextMessageRole::User));
    dice.pick(&[None, assistant, assistant, user, Some(TextMessageRole::Developer)])
}

fn run_finished(dice: &mut Dice<'_>) -> Event {
    let outcome = match dice.below(6) {
        0 => None,
        1 => Some(RunOutcome::success()),
        2 => Some(RunOutcome::Success {
            pending_tool_call_ids: (0..dice.below(3)).map(|_| dice.call_id().into()).collect(),
        }),
        3 => Some(RunOutcome::Cancelled),
        _ => {
            let ids: Vec<_> = (0..dice.below(4)).map(|_| dice.pick(&["i", "j"])).collect();
            let interrupts = ids
                .into_iter()
                .map(|id| Interrupt { id: id.into(), ..Interrupt::new("input_required") });
            Some(RunOutcome::Interrupt { interrupts: interrupts.collect() })
        }
    };
    let mut finished = RunFinished::new(dice.id().into(), dice.id().into(), RunOutcome::success());
    finished.outcome = outcome;
    finished.result = dice.maybe(3, Dice::json);
    let entry =
        || TokenUsage { model: Some("m".to_owned()), input_tokens: Some(3), ..Default::default() };
    finished.usage = (0..dice.below(3)).map(|_| entry()).collect();
    finished.into()
}

/// Returns a patch, which may not apply or may have invalid JSON Pointers.
fn patch(dice: &mut Dice<'_>) -> Vec<PatchOperation> {
    (0..dice.below(4)).map(|_| operation(dice)).collect()
}

fn operation(dice: &mut Dice<'_>) -> PatchOperation {
    let known = ["/a", "/list/0", "/list/-", "", "/a/b", "/x~1y", "/new"];
    let others = ["/list/9", "/list/2/b", "/list/x", "/list/01", "/missing/a", "a", "/~2"];
    let path = if dice.chance(3) { dice.pick(&others) } else { dice.pick(&known) }.to_owned();
    let from = dice
        .pick(&["", "/a", "/list/0", "/list/2", "/a/b", "/new", "/missing", "/list/-"])
        .to_owned();
    match dice.below(6) {
        0 => PatchOperation::add(path, dice.json()),
        1 => PatchOperation::remove(path),
        2 => PatchOperation::replace(path, dice.json()),
        3 => PatchKind::Move { from, path }.into(),
        4 => PatchKind::Copy { from, path }.into(),
        _ => PatchKind::Test { path, value: dice.json() }.into(),
    }
}
