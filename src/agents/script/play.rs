//! Plays a reply: turns its operations into events.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::Stream;

use super::{
    answers::{Answer, add_args},
    conversation::Match,
    questions::OpenCall,
    reply::{Call, Op, Reply},
    template::{Template, Values},
};
use crate::{
    agent::{
        AgentError, RunContext,
        emit::{ReasoningSpan, Step, TextMessage, ToolCallEvents, interrupt},
    },
    protocol::{
        Event, MessageId,
        event::{ActivityDelta, ActivitySnapshot, Custom, StateDelta, StateSnapshot},
    },
};

const PARALLEL_ARGS_DELTAS: usize = 3;

pub(super) fn play(
    replies: Arc<[Reply]>,
    index: usize,
    matched: Match,
    thinks: bool,
    cx: RunContext,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    async_stream::try_stream! {
        let Match { mut values, common, mut answers } = matched;
        let mut last_message = None;
        let mut open_calls = Vec::new();
        let mut results = Vec::new();
        let mut activities: HashMap<&str, MessageId> = HashMap::new();
        for op in &replies[index].play {
            match op {
                Op::Text { deltas, every } => {
                    let message = TextMessage::new();
                    yield message.start();
                    for (index, delta) in deltas.iter().enumerate() {
                        pause(index, *every).await;
                        yield message.delta(delta.fill(&values));
                    }
                    yield message.end();
                    last_message = Some(message);
                }
                Op::Think { .. } if !thinks => {}
                Op::Think { deltas, every } => {
                    let reasoning = ReasoningSpan::new();
                    for event in reasoning.start() {
                        yield event;
                    }
                    for (index, delta) in deltas.iter().enumerate() {
                        pause(index, *every).await;
                        yield reasoning.delta(delta.fill(&values));
                    }
                    for event in reasoning.end() {
                        yield event;
                    }
                }
                Op::Calls { calls, within } => {
                    // Parallel calls share a parent message, if necessary one that is not sent.
                    let textless = TextMessage::new();
                    let parent = if *within { last_message.as_ref() } else { None };
                    let parent = parent.or((calls.len() > 1).then_some(&textless));
                    for event in play_calls(calls, parent, &values, &mut open_calls) {
                        yield event;
                    }
                }
                Op::StepStarted(name) => yield Step::new(name).start(),
                Op::StepFinished(name) => yield Step::new(name).finish(),
                Op::State(state) => yield StateSnapshot::new(state.fill(&values)).into(),
                Op::Patch(patch) => yield StateDelta::new(patch.clone()).into(),
                Op::Activity { kind, content } => {
                    let id = activities.entry(kind).or_insert_with(MessageId::random).clone();
                    if let serde_json::Value::Object(content) = content.fill(&values) {
                        yield ActivitySnapshot::new(id, kind, content).into();
                    }
                }
                Op::ActivityPatch { kind, patch } => {
                    if let Some(id) = activities.get(kind.as_str()) {
                        yield ActivityDelta::new(id.clone(), kind, patch.clone()).into();
                    }
                }
                Op::Custom { name, value } => yield Custom::new(name, value.fill(&values)).into(),
                Op::Count { to, most, every } => {
                    let message = TextMessage::new();
                    yield message.start();
                    let last = number(to, &values).min(*most);
                    for n in 1..=last {
                        pause(n as usize - 1, *every).await;
                        yield message.delta(if n < last { format!("{n} ") } else { n.to_string() });
                    }
                    yield message.end();
                    last_message = Some(message);
                }
                Op::Wait(time) => tokio::time::sleep(*time).await,
                Op::Fail { message, code } => {
                    let code = code.clone().unwrap_or_else(|| "script_failure".to_owned());
                    Err(AgentError::new(code, message.fill(&values)))?;
                }
                Op::Results { of, approved, declined } => {
                    let (these, rest) = answers.into_iter().partition(|answer| of.includes(&answer.name));
                    answers = rest;
                    for event in play_results(these, approved, declined, &common, &mut results) {
                        yield event;
                    }
                    values.insert("results".to_owned(), results.join(&replies[index].when.join));
                }
                Op::Interrupts(questions) => {
                    let asked = questions.iter().filter_map(|question| question.ask(&mut open_calls, &values));
                    yield interrupt(&cx, asked.collect());
                }
            }
        }
    }
}

/// Returns the events of tool calls: all starts, the arguments interleaved, all ends, and then the results in order.
/// Adds calls without a result to `open`.
fn play_calls(calls: &[Call], parent: Option<&TextMessage>, values: &Values, open: &mut Vec<OpenCall>) -> Vec<Event> {
    let pieces = if calls.len() == 1 { 1 } else { PARALLEL_ARGS_DELTAS };
    let calls: Vec<_> = calls
        .iter()
        .map(|call| {
            let mut events = ToolCallEvents::new(&call.tool);
            if let Some(parent) = parent {
                events = events.within(parent);
            }
            let result = call.result.as_ref().map(|result| result.fill(values));
            let args = call.args.fill(values);
            if let (None, serde_json::Value::Object(args)) = (&result, &args) {
                let mut values = Values::new();
                add_args(args, &mut values);
                open.push(OpenCall { tool: call.tool.clone(), id: events.id().clone(), args: values });
            }
            (events, split(&args.to_string(), pieces), result)
        })
        .collect();
    let mut events: Vec<Event> = calls.iter().map(|(call, ..)| call.start()).collect();
    for piece in 0..pieces {
        events.extend(calls.iter().filter_map(|(call, args, _)| Some(call.delta(args.get(piece)?))));
    }
    events.extend(calls.iter().map(|(call, ..)| call.end()));
    events.extend(calls.iter().filter_map(|(call, _, result)| Some(call.result(result.clone()?))));
    events
}

fn play_results(
    answers: Vec<Answer>,
    approved: &Template,
    declined: &Template,
    common: &Values,
    results: &mut Vec<String>,
) -> Vec<Event> {
    let mut events = Vec::new();
    for answer in answers {
        let Some(call) = answer.call else { continue };
        let mut values = common.clone();
        values.extend(answer.values);
        let text = if answer.approved { approved } else { declined }.fill(&values);
        // A repeated answer must not give its call a second result.
        if !call.has_result {
            events.push(ToolCallEvents::with_id(call.id, answer.name).result(text.as_str()));
        }
        results.push(text);
    }
    events
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

async fn pause(index: usize, time: Duration) {
    if index > 0 && time > Duration::ZERO {
        tokio::time::sleep(time).await;
    }
}
