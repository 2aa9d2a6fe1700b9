//! Plays a reply.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures::Stream;

use super::{
    compile::{Call, Op, Reply},
    template::{Template, Values},
};
use crate::{
    agent::{
        AgentError,
        build::{Reasoning, Step, TextMessage, ToolCall},
    },
    protocol::{
        Event, MessageId,
        event::{ActivityDelta, ActivitySnapshot, Custom, StateDelta, StateSnapshot},
    },
};

/// Into how many pieces the arguments of parallel calls are cut.
const PIECES: usize = 3;

/// The events of a reply.
pub(super) fn play(
    replies: Arc<[Reply]>,
    index: usize,
    values: Values,
) -> impl Stream<Item = Result<Event, AgentError>> + Send {
    async_stream::try_stream! {
        let mut last_message = None;
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
                Op::Think { deltas, every } => {
                    let reasoning = Reasoning::new();
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
                    // Calls that come together belong to one message, if need be to one without a text.
                    let textless = TextMessage::new();
                    let parent = if *within { last_message.as_ref() } else { None };
                    let parent = parent.or((calls.len() > 1).then_some(&textless));
                    for event in play_calls(calls, parent, &values) {
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
            }
        }
    }
}

/// Tool calls: started together, their arguments piece by piece in turn, answered in order.
fn play_calls(calls: &[Call], parent: Option<&TextMessage>, values: &Values) -> Vec<Event> {
    let pieces = if calls.len() == 1 { 1 } else { PIECES };
    let calls: Vec<_> = calls
        .iter()
        .map(|call| {
            let mut events = ToolCall::new(&call.tool);
            if let Some(parent) = parent {
                events = events.within(parent);
            }
            let result = call.result.as_ref().map(|result| result.fill(values));
            (events, cut(&call.args.fill(values).to_string(), pieces), result)
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

/// A text in about equal pieces.
fn cut(text: &str, pieces: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(pieces).max(1);
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// A number that a template names; digits that are too many are as much as there is.
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
