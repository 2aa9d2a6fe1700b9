//! Streams that are legal by construction: each step sends an event that is legal at this point.

use agui_run::Transcript;
use agui_server::protocol::{
    Event, JsonObject, Message, MessageId, PatchKind, PatchOperation, RunAgentInput, SubagentRunId,
    ToolCallId, event::*,
};
use serde_json::json;

use super::dice::Dice;

type Owner = Option<SubagentRunId>;

/// Generates a legal stream step by step, and tracks which items are open.
pub struct Walk {
    /// The names of the application's tools, whose calls the agent does not answer.
    frontend: Vec<String>,
    /// The conversation as a client has it after the events so far, for snapshots.
    transcript: Transcript,
    texts: Vec<Text>,
    reasonings: Vec<Item>,
    spans: Vec<Item>,
    calls: Vec<Call>,
    activities: Vec<(MessageId, Owner)>,
    steps: Vec<(&'static str, Owner)>,
    /// The announced invocations, and whether they are active.
    subagents: Vec<(SubagentRunId, bool)>,
    ids: usize,
    /// The metadata of the next event.
    metadata: Option<JsonObject>,
    events: Vec<Event>,
}

#[derive(Clone)]
struct Item {
    id: MessageId,
    owner: Owner,
    open: bool,
}

struct Text {
    item: Item,
    /// `true` if no event of this run has opened the message: it is from the input, or was created by a call.
    unopened: bool,
    role: Option<TextMessageRole>,
    name: Option<String>,
}

struct Call {
    id: ToolCallId,
    name: &'static str,
    parent: Option<MessageId>,
    /// The owner that the start event names. If it names none, the call has its parent's owner.
    tag: Owner,
    owner: Owner,
    open: bool,
    answered: bool,
}

impl Walk {
    pub fn new(input: &RunAgentInput) -> Self {
        Self {
            frontend: input.tools.iter().map(|tool| tool.name.clone()).collect(),
            transcript: Transcript::from_input(input),
            texts: input.messages.iter().filter_map(Text::of).collect(),
            reasonings: Vec::new(),
            spans: Vec::new(),
            calls: Vec::new(),
            activities: Vec::new(),
            steps: Vec::new(),
            subagents: Vec::new(),
            ids: 0,
            metadata: None,
            events: Vec::new(),
        }
    }

    /// Sends one or more legal events.
    pub(super) fn step(&mut self, dice: &mut Dice<'_>) {
        let before = self.events.len();
        self.metadata = dice.maybe(4, Dice::object);
        match dice.below(24) {
            0 | 1 => self.start_text(dice),
            2..=4 => self.continue_text(dice),
            5 => self.reopen_text(dice),
            6 | 7 => self.start_call(dice),
            8..=10 => self.continue_call(dice),
            11 => self.reopen_call(dice),
            12 => self.answer(dice),
            13 => self.start_reasoning(dice),
            14 | 15 => self.continue_reasoning(dice),
            16 => self.encrypt(dice),
            17 => self.state(dice),
            18 | 19 => self.activity(dice),
            20 => self.toggle_step(dice),
            21 => self.subagent(dice),
            22 => self.pass_through(dice),
            _ => self.restate(dice),
        }
        if self.events.len() == before {
            self.start_text(dice);
        }
    }

    /// Closes all open items and returns the stream.
    pub fn finish(mut self) -> Vec<Event> {
        self.close_all(|_| true);
        let active = self.subagents.into_iter().rev().filter(|(_, active)| *active);
        self.events.extend(active.map(|(id, _)| SubagentFinished::new(id).into()));
        self.events
    }

    /// Closes the open items of the owners for which `of` is true.
    fn close_all(&mut self, of: impl Fn(&Owner) -> bool) {
        let mut ends = Vec::new();
        for text in self
            .texts
            .iter_mut()
            .map(|text| &mut text.item)
            .filter(|item| item.open && of(&item.owner))
        {
            text.open = false;
            ends.push(TextMessageEnd::new(text.id.clone()).into());
        }
        for call in self.calls.iter_mut().filter(|call| call.open && of(&call.owner)) {
            call.open = false;
            ends.push(ToolCallEnd::new(call.id.clone()).into());
        }
        for message in self.reasonings.iter_mut().filter(|item| item.open && of(&item.owner)) {
            message.open = false;
            ends.push(ReasoningMessageEnd::new(message.id.clone()).into());
        }
        for span in self.spans.iter_mut().filter(|item| item.open && of(&item.owner)) {
            span.open = false;
            ends.push(ReasoningEnd::new(span.id.clone()).into());
        }
        ends.into_iter().for_each(|end: Event| self.send(end, None));
        for (name, owner) in self.steps.extract_if(.., |(_, owner)| of(owner)).collect::<Vec<_>>() {
            self.send(StepFinished::new(name), owner);
        }
    }

    fn send(&mut self, event: impl Into<Event>, owner: Owner) {
        let mut event = event.into().attributed_to(owner);
        event.base_mut().set_metadata(self.metadata.take().map(Into::into));
        self.transcript.apply(&event);
        self.events.push(event);
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.ids += 1;
        format!("{prefix}{}", self.ids)
    }

    /// Returns the parent agent, an announced invocation (which may have ended), or one that is never announced.
    fn owner(&self, dice: &mut Dice<'_>) -> Owner {
        match dice.below(8) {
            0..=4 => None,
            7 => Some("unannounced".into()),
            _ if self.subagents.is_empty() => None,
            _ => Some(self.subagents[dice.below(self.subagents.len())].0.clone()),
        }
    }

    fn start_text(&mut self, dice: &mut Dice<'_>) {
        let item = Item { id: self.fresh("m").into(), owner: self.owner(dice), open: true };
        let role =
            dice.pick(&[None, Some(TextMessageRole::Assistant), Some(TextMessageRole::User)]);
        let name = dice.maybe(4, |_| "Ann".to_owned());
        self.texts.push(Text { item: item.clone(), unopened: false, role, name: name.clone() });
        self.send(TextMessageStart { role, name, ..TextMessageStart::new(item.id) }, item.owner);
    }

    fn continue_text(&mut self, dice: &mut Dice<'_>) {
        let Some(text) = pick_item(&mut self.texts, |text| text.item.open, dice) else { return };
        let (id, tag) = (text.item.id.clone(), tag(&text.item.owner, dice));
        if dice.chance(3) {
            text.item.open = false;
            self.send(TextMessageEnd::new(id), tag);
        } else {
            self.send(TextMessageContent::new(id, dice.word()), tag);
        }
    }

    fn reopen_text(&mut self, dice: &mut Dice<'_>) {
        let Some(text) = pick_item(&mut self.texts, |text| !text.item.open, dice) else { return };
        (text.item.open, text.unopened) = (true, false);
        let start = TextMessageStart {
            role: text.role,
            name: text.name.clone(),
            ..TextMessageStart::new(text.item.id.clone())
        };
        let owner = text.item.owner.clone();
        self.send(start, owner);
    }

    /// Starts a call without a message, in a known assistant message, or in an assistant message that it creates.
    fn start_call(&mut self, dice: &mut Dice<'_>) {
        let id: ToolCallId = self.fresh("c").into();
        let name = dice.pick(&["search", "confirm", "own", "own"]);
        let mut owner = self.owner(dice);
        let mut tag = owner.clone();
        let parent = match dice.below(4) {
            0 => None,
            1 => {
                let item = Item { id: self.fresh("m").into(), owner: owner.clone(), open: false };
                self.texts.push(Text {
                    item: item.clone(),
                    unopened: true,
                    role: None,
                    name: None,
                });
                Some(item.id)
            }
            _ => pick_item(
                &mut self.texts,
                |text| text.role.unwrap_or_default() == TextMessageRole::Assistant,
                dice,
            )
            .map(|text| {
                owner = text.item.owner.clone();
                // In the reference client, a call inherits the owner only from a message with a start event.
                tag = if text.unopened { owner.clone() } else { self::tag(&owner, dice) };
                text.item.id.clone()
            }),
        };
        let start = ToolCallStart {
            parent_message_id: parent.clone(),
            ..ToolCallStart::new(id.clone(), name)
        };
        self.calls.push(Call {
            id,
            name,
            parent,
            tag: tag.clone(),
            owner,
            open: true,
            answered: false,
        });
        self.send(start, tag);
    }

    fn continue_call(&mut self, dice: &mut Dice<'_>) {
        let Some(call) = pick_item(&mut self.calls, |call| call.open, dice) else { return };
        let (id, tag) = (call.id.clone(), tag(&call.owner, dice));
        if dice.chance(3) {
            call.open = false;
            self.send(ToolCallEnd::new(id), tag);
        } else {
            self.send(ToolCallArgs::new(id, dice.word()), tag);
        }
    }

    fn reopen_call(&mut self, dice: &mut Dice<'_>) {
        let Some(call) = pick_item(&mut self.calls, |call| !call.open && !call.answered, dice)
        else {
            return;
        };
        call.open = true;
        let start = ToolCallStart {
            parent_message_id: call.parent.clone(),
            ..ToolCallStart::new(call.id.clone(), call.name)
        };
        let tag = call.tag.clone();
        self.send(start, tag);
    }

    /// Sends the result of a call of the agent's own tools, or of an unknown call.
    fn answer(&mut self, dice: &mut Dice<'_>) {
        let frontend = self.frontend.clone();
        let own = |call: &Call| {
            !call.open && !call.answered && !frontend.iter().any(|name| name == call.name)
        };
        let call = match pick_item(&mut self.calls, own, dice) {
            Some(call) => {
                call.answered = true;
                call.id.clone()
            }
            None => "unknown".into(),
        };
        let (id, owner) = (self.fresh("r"), self.owner(dice));
        self.send(ToolCallResult::new(id, call, dice.text()), owner);
    }

    /// Starts a reasoning span, a reasoning message, or both with the same id.
    fn start_reasoning(&mut self, dice: &mut Dice<'_>) {
        let item = Item { id: self.fresh("m").into(), owner: self.owner(dice), open: true };
        let form = dice.below(3);
        if form != 1 {
            self.spans.push(item.clone());
            self.send(ReasoningStart::new(item.id.clone()), item.owner.clone());
        }
        if form != 2 {
            self.reasonings.push(item.clone());
            self.send(ReasoningMessageStart::new(item.id), item.owner);
        }
    }

    fn continue_reasoning(&mut self, dice: &mut Dice<'_>) {
        if dice.chance(3) {
            let Some(span) = pick_item(&mut self.spans, |span| span.open, dice) else { return };
            span.open = false;
            let (end, tag) = (ReasoningEnd::new(span.id.clone()), tag(&span.owner, dice));
            return self.send(end, tag);
        }
        let Some(item) = pick_item(&mut self.reasonings, |item| item.open, dice) else { return };
        let (id, tag) = (item.id.clone(), tag(&item.owner, dice));
        if dice.chance(3) {
            item.open = false;
            self.send(ReasoningMessageEnd::new(id), tag);
        } else {
            self.send(ReasoningMessageContent::new(id, dice.word()), tag);
        }
    }

    fn encrypt(&mut self, dice: &mut Dice<'_>) {
        let message = pick_item(&mut self.reasonings, |_| true, dice)
            .map(|item| (item.id.clone(), item.owner.clone()));
        let call = pick_item(&mut self.calls, |_| true, dice)
            .map(|call| (call.id.clone(), call.owner.clone()));
        let (event, owner) = match (dice.below(2), message, call) {
            (0, Some((id, owner)), _) => (
                ReasoningEncryptedValue::new(EncryptedValueSubtype::Message, &*id, "sealed"),
                owner,
            ),
            (_, _, Some((id, owner))) => (
                ReasoningEncryptedValue::new(EncryptedValueSubtype::ToolCall, &*id, "sealed"),
                owner,
            ),
            _ => (
                ReasoningEncryptedValue::new(EncryptedValueSubtype::Message, "unknown", "sealed"),
                None,
            ),
        };
        let tag = tag(&owner, dice);
        self.send(event, tag);
    }

    /// Sends a state event. Some patches do not apply, which is legal.
    fn state(&mut self, dice: &mut Dice<'_>) {
        let event: Event = match dice.below(4) {
            0 => StateSnapshot::new(dice.json()).into(),
            1 => StateDelta::new(vec![PatchOperation::add("/a", dice.json())]).into(),
            2 => StateDelta::new(vec![
                PatchOperation::add("/new", 1),
                PatchKind::Test { path: "/new".to_owned(), value: json!(2) }.into(),
            ])
            .into(),
            _ => StateDelta::new(vec![PatchOperation::replace("/a/b", dice.json())]).into(),
        };
        let owner = self.owner(dice);
        self.send(event, owner);
    }

    fn activity(&mut self, dice: &mut Dice<'_>) {
        let index = dice.below(self.activities.len() + 1);
        let Some((id, owner)) = self.activities.get(index).cloned() else {
            let (id, owner) = (MessageId::from(self.fresh("m")), self.owner(dice));
            self.activities.push((id.clone(), owner.clone()));
            let replace = dice.maybe(3, |_| false);
            return self.send(
                ActivitySnapshot { replace, ..ActivitySnapshot::new(id, "search", content(0)) },
                owner,
            );
        };
        match dice.below(5) {
            0 => {
                let tag = tag(&owner, dice);
                self.send(
                    ActivitySnapshot {
                        replace: Some(false),
                        ..ActivitySnapshot::new(id, "other", content(1))
                    },
                    tag,
                );
            }
            1 => {
                // A snapshot that replaces the activity also sets its owner.
                let owner = self.owner(dice);
                self.activities[index].1.clone_from(&owner);
                self.send(ActivitySnapshot::new(id, "plan", content(2)), owner);
            }
            form => {
                let patch = match form {
                    2 => vec![PatchOperation::add("/items/-", dice.json())],
                    3 => vec![PatchOperation::replace("/missing", 1)],
                    _ => vec![PatchOperation::replace("", json!({ "n": 9, "items": [] }))],
                };
                let tag = tag(&owner, dice);
                self.send(ActivityDelta::new(id, "search", patch), tag);
            }
        }
    }

    fn toggle_step(&mut self, dice: &mut Dice<'_>) {
        let step = (dice.pick(&["plan", "act"]), self.owner(dice));
        match self.steps.iter().position(|open| *open == step) {
            Some(index) => {
                self.steps.remove(index);
                self.send(StepFinished::new(step.0), step.1);
            }
            None => {
                self.steps.push(step.clone());
                self.send(StepStarted::new(step.0), step.1);
            }
        }
    }

    /// Announces an invocation, or ends one whose items are closed.
    fn subagent(&mut self, dice: &mut Dice<'_>) {
        let form = dice.below(4);
        if form >= 2
            && let Some((id, active)) = pick_item(&mut self.subagents, |(_, active)| *active, dice)
        {
            *active = false;
            let id = id.clone();
            self.close_all(|owner| owner.as_ref() == Some(&id));
            return match form {
                2 => self.send(SubagentFinished::new(id), None),
                _ => self.send(SubagentError::new(id, "no luck"), None),
            };
        }
        let mut started = SubagentStarted::new(self.fresh("s"), "researcher");
        started.parent_subagent_run_id =
            pick_item(&mut self.subagents, |_| true, dice).map(|(id, _)| id.clone());
        self.subagents.push((started.subagent_run_id.clone(), true));
        self.send(started, None);
    }

    fn pass_through(&mut self, dice: &mut Dice<'_>) {
        let owner = self.owner(dice);
        match dice.below(2) {
            0 => self.send(Custom::new("com.example.event", dice.json()), owner),
            _ => self.send(Raw::new(dice.json()), owner),
        }
    }

    /// Sends a snapshot of the conversation, with or without its activities and reasoning messages.
    fn restate(&mut self, dice: &mut Dice<'_>) {
        let mut messages = self.transcript.messages().to_vec();
        if dice.chance(2) {
            messages
                .retain(|message| !matches!(message, Message::Activity(_) | Message::Reasoning(_)));
        }
        self.send(MessagesSnapshot::new(messages), None);
    }
}

impl Text {
    fn of(message: &Message) -> Option<Self> {
        let role = match message {
            Message::Developer(_) => TextMessageRole::Developer,
            Message::System(_) => TextMessageRole::System,
            Message::Assistant(_) => TextMessageRole::Assistant,
            Message::User(_) => TextMessageRole::User,
            _ => return None,
        };
        let item = Item {
            id: message.id().clone(),
            owner: message.subagent_run_id().cloned(),
            open: false,
        };
        Some(Self {
            item,
            unopened: true,
            role: Some(role),
            name: message.name().map(str::to_owned),
        })
    }
}

/// Returns the attribution of a continuation, which names the owner or is absent.
fn tag(owner: &Owner, dice: &mut Dice<'_>) -> Owner {
    owner.clone().filter(|_| dice.chance(2))
}

fn pick_item<'a, T>(
    items: &'a mut [T],
    fits: impl Fn(&T) -> bool,
    dice: &mut Dice<'_>,
) -> Option<&'a mut T> {
    let mut fitting: Vec<_> = items.iter_mut().filter(|item| fits(item)).collect();
    let index = dice.below(fitting.len());
    (index < fitting.len()).then(|| fitting.swap_remove(index))
}

fn content(n: i32) -> JsonObject {
    JsonObject::from_iter([("n".to_owned(), json!(n)), ("items".to_owned(), json!([]))])
}
