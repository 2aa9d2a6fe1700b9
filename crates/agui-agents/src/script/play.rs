//! Plays a line: turns its actions into events.

use std::{collections::HashMap, iter, sync::Arc, time::Duration};

use futures::Stream;
use serde_json::{Value, json};

use super::{
    format::{ActionKind, Call, ScriptLine},
    matcher::Match,
    questions::OpenCall,
    replies::add_args,
    template::{JsonTemplate, Template, Values},
};
use agui_agent::{
    AgentError, RunContext,
    emit::{ReasoningSpan, Step, TextMessage, ToolCallEvents, interrupt},
};
use agui_protocol::{
    Event, MessageId,
    event::{ActivityDelta, ActivitySnapshot, Custom, StateDelta, StateSnapshot},
    host::JsonPatch,
};

const PARALLEL_ARGS_DELTAS: usize = 3;

/// Events, each with the time to wait before it. An entry without an event is a pause.
type Beats<'a> = Box<dyn Iterator<Item = (Duration, Option<Event>)> + Send + 'a>;

pub(super) fn play(
    lines: Arc<[ScriptLine]>,
    index: usize,
    matched: Match,
    cx: RunContext,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    async_stream::try_stream! {
        let line = &lines[index];
        let mut player = Player {
            matched, cx, join: &line.join,
            last_message: None, open_calls: Vec::new(), results: Vec::new(), activities: HashMap::new(),
        };
        for action in &line.play {
            for (time, event) in player.perform(&action.get_ref().0)? {
                if time > Duration::ZERO {
                    tokio::time::sleep(time).await;
                }
                if let Some(event) = event {
                    yield event;
                }
            }
        }
    }
}

struct Player<'a> {
    matched: Match,
    cx: RunContext,
    join: &'a str,
    last_message: Option<TextMessage>,
    open_calls: Vec<OpenCall>,
    /// The results that [`ActionKind::ResultOf`] has played.
    results: Vec<String>,
    activities: HashMap<&'a str, MessageId>,
}

impl<'a> Player<'a> {
    fn perform<'b>(&'b mut self, action: &'a ActionKind) -> Result<Beats<'b>, AgentError> {
        Ok(match action {
            ActionKind::Text { text, every_ms } => {
                let (message, values) =
                    (self.last_message.insert(TextMessage::new()), &self.matched.values);
                message_beats(message, text.iter().map(|delta| delta.fill(values)), *every_ms)
            }
            ActionKind::Count { count, most, every_ms } => {
                let last = number(count, &self.matched.values).min(*most);
                let numbers =
                    (1..=last).map(move |n| if n < last { format!("{n} ") } else { n.to_string() });
                message_beats(self.last_message.insert(TextMessage::new()), numbers, *every_ms)
            }
            ActionKind::Think { .. } if self.matched.without_thinking => at_once([]),
            ActionKind::Think { think, every_ms } => {
                let (reasoning, values) = (ReasoningSpan::new(), &self.matched.values);
                let (start, end) = (reasoning.start(), reasoning.end());
                paced(
                    start,
                    think.iter().map(move |delta| reasoning.delta(delta.fill(values))),
                    end,
                    *every_ms,
                )
            }
            ActionKind::Calls { calls, within } => at_once(self.call(calls, *within)),
            ActionKind::Step { step, .. } => at_once([Step::new(step).start()]),
            ActionKind::StepEnd(step) => at_once([Step::new(step).finish()]),
            ActionKind::State { state } => {
                at_once([StateSnapshot::new(state.fill(&self.matched.values)).into()])
            }
            ActionKind::Patch { patch } => at_once([StateDelta::new(patch.clone()).into()]),
            ActionKind::Activity { activity, content, patch } => {
                at_once(self.activity(activity, content.as_ref(), patch))
            }
            ActionKind::Custom { custom, value } => {
                let value = value
                    .as_ref()
                    .map(|value| value.fill(&self.matched.values))
                    .unwrap_or_default();
                at_once([Custom::new(custom, value).into()])
            }
            ActionKind::WaitMs { wait_ms } => {
                Box::new(iter::once((Duration::from_millis(*wait_ms), None)))
            }
            ActionKind::Fail { fail, code } => {
                let code = code.clone().unwrap_or_else(|| "script_failure".to_owned());
                return Err(AgentError::new(code, fail.fill(&self.matched.values)));
            }
            ActionKind::ResultOf { result_of, approved, declined } => {
                at_once(self.result_of(result_of, approved, declined))
            }
            ActionKind::Interrupts { interrupts } => {
                let values = &self.matched.values;
                let asked = interrupts
                    .iter()
                    .filter_map(|question| question.ask(&mut self.open_calls, values));
                at_once([interrupt(&self.cx, asked.collect())])
            }
        })
    }

    /// Returns the events of tool calls: all starts, the arguments interleaved, all ends, and then the results in order.
    fn call(&mut self, calls: &[Call], within: bool) -> Vec<Event> {
        // Parallel calls share a parent message, if necessary one that is not sent.
        let textless = TextMessage::new();
        let parent = if within { self.last_message.as_ref() } else { None };
        let parent = parent.or((calls.len() > 1).then_some(&textless));
        let pieces = if calls.len() == 1 { 1 } else { PARALLEL_ARGS_DELTAS };
        let mut played = Vec::new();
        for call in calls {
            let mut events = ToolCallEvents::new(&call.call);
            if let Some(parent) = parent {
                events = events.within(parent);
            }
            let result = call.result.as_ref().map(|result| result.fill(&self.matched.values));
            let args = call
                .args
                .as_ref()
                .map_or_else(|| json!({}), |args| args.fill(&self.matched.values));
            if let (None, Value::Object(args)) = (&result, &args) {
                let mut values = Values::new();
                add_args(args, &mut values);
                self.open_calls.push(OpenCall {
                    tool: call.call.clone(),
                    id: events.id().clone(),
                    args: values,
                });
            }
            played.push((events, split(&args.to_string(), pieces), result));
        }
        let mut events: Vec<Event> = played.iter().map(|(call, ..)| call.start()).collect();
        for piece in 0..pieces {
            events.extend(
                played.iter().filter_map(|(call, args, _)| Some(call.delta(args.get(piece)?))),
            );
        }
        events.extend(played.iter().map(|(call, ..)| call.end()));
        events.extend(
            played.iter().filter_map(|(call, _, result)| Some(call.result(result.clone()?))),
        );
        events
    }

    fn activity(
        &mut self,
        kind: &'a str,
        content: Option<&JsonTemplate>,
        patch: &JsonPatch,
    ) -> Option<Event> {
        let id = self.activities.entry(kind).or_insert_with(MessageId::random).clone();
        match content.map(|content| content.fill(&self.matched.values)) {
            Some(Value::Object(content)) => Some(ActivitySnapshot::new(id, kind, content).into()),
            Some(_) => None,
            None => Some(ActivityDelta::new(id, kind, patch.clone()).into()),
        }
    }

    /// Returns the results of the calls of a tool that the run replies to.
    fn result_of(&mut self, tool: &str, approved: &Template, declined: &Template) -> Vec<Event> {
        let mut events = Vec::new();
        for reply in self.matched.replies.extract_if(.., |reply| tool == "*" || tool == reply.name)
        {
            let Some(call) = reply.call else { continue };
            let mut values = self.matched.common.clone();
            values.extend(reply.values);
            let text = if reply.approved { approved } else { declined }.fill(&values);
            // A repeated reply must not give its call a second result.
            if !call.has_result {
                events.push(ToolCallEvents::with_id(call.id, reply.name).result(text.as_str()));
            }
            self.results.push(text);
        }
        self.matched.values.insert("results".to_owned(), self.results.join(self.join));
        events
    }
}

fn at_once<'a>(events: impl IntoIterator<Item = Event, IntoIter: Send + 'a>) -> Beats<'a> {
    Box::new(events.into_iter().map(|event| (Duration::ZERO, Some(event))))
}

fn message_beats<'a>(
    message: &TextMessage,
    deltas: impl Iterator<Item = String> + Send + 'a,
    every_ms: u64,
) -> Beats<'a> {
    let (start, end) = (message.start(), message.end());
    let message = message.clone();
    paced([start], deltas.map(move |delta| message.delta(delta)), [end], every_ms)
}

/// Returns events with a pause between two deltas.
fn paced<'a, const N: usize>(
    start: [Event; N],
    deltas: impl Iterator<Item = Event> + Send + 'a,
    end: [Event; N],
    every_ms: u64,
) -> Beats<'a> {
    let pauses = iter::once(Duration::ZERO).chain(iter::repeat(Duration::from_millis(every_ms)));
    let deltas = pauses.zip(deltas.map(Some));
    Box::new(at_once(start).chain(deltas).chain(at_once(end)))
}

fn split(text: &str, pieces: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(pieces).max(1);
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// Reads the filled template as a number: 0 if it is not a number, the largest number if it has too many digits.
fn number(template: &Template, values: &Values) -> u64 {
    let text = template.fill(values);
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().unwrap_or(u64::MAX) } else { 0 }
}
