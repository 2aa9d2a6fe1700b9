//! Changes that make a legal stream illegal.

use agui_server::protocol::Event;
use proptest::{prelude::*, sample::Index};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Mutation {
    Remove,
    Repeat,
    CloseBeforeOpening,
}

pub(crate) fn any() -> impl Strategy<Value = Mutation> {
    prop_oneof![Just(Mutation::Remove), Just(Mutation::Repeat), Just(Mutation::CloseBeforeOpening)]
}

impl Mutation {
    /// Changes the stream at one of the events that open or close an item. `RUN_STARTED` always is one.
    pub(crate) fn apply(self, stream: &[Event], place: Index) -> Vec<Event> {
        let mut stream = stream.to_vec();
        let places: Vec<usize> =
            (0..stream.len()).filter(|&at| boundary(&stream[at]).is_some()).collect();
        let at = *place.get(&places);
        match self {
            Self::Remove => drop(stream.remove(at)),
            Self::Repeat => stream.insert(at, stream[at].clone()),
            Self::CloseBeforeOpening => {
                let (item, _) = boundary(&stream[at]).unwrap();
                let is = |event: &Event, side| {
                    boundary(event).is_some_and(|(of, on)| of == item && on == side)
                };
                let closer = (at..stream.len())
                    .find(|&other| is(&stream[other], Side::Closes))
                    .unwrap_or(at);
                let opener = (0..closer).rfind(|&other| is(&stream[other], Side::Opens));
                match opener {
                    Some(opener) => stream.swap(opener, closer),
                    // A result has no opening event, so it is removed instead.
                    None => drop(stream.remove(at)),
                }
            }
        }
        stream
    }
}

#[derive(Debug, PartialEq)]
enum Side {
    Opens,
    Closes,
}

/// Returns the item that an event opens or closes. Each of these events is required exactly once, at its place.
fn boundary(event: &Event) -> Option<(String, Side)> {
    use Side::{Closes, Opens};
    let owner = event.subagent_run_id();
    Some(match event {
        Event::RunStarted(_) => ("run".into(), Opens),
        Event::RunFinished(_) => ("run".into(), Closes),
        Event::TextMessageStart(e) => (format!("text {}", e.message_id), Opens),
        Event::TextMessageEnd(e) => (format!("text {}", e.message_id), Closes),
        Event::ReasoningStart(e) => (format!("span {}", e.message_id), Opens),
        Event::ReasoningEnd(e) => (format!("span {}", e.message_id), Closes),
        Event::ReasoningMessageStart(e) => (format!("reasoning {}", e.message_id), Opens),
        Event::ReasoningMessageEnd(e) => (format!("reasoning {}", e.message_id), Closes),
        Event::ToolCallStart(e) => (format!("call {}", e.tool_call_id), Opens),
        Event::ToolCallEnd(e) => (format!("call {}", e.tool_call_id), Closes),
        // A call without its result would be pending; the result of an unknown call is not required.
        Event::ToolCallResult(e) if e.tool_call_id != "unknown" => {
            (format!("result {}", e.message_id), Closes)
        }
        Event::StepStarted(e) => (format!("step {} {owner:?}", e.step_name), Opens),
        Event::StepFinished(e) => (format!("step {} {owner:?}", e.step_name), Closes),
        Event::SubagentStarted(e) => (format!("subagent {}", e.subagent_run_id), Opens),
        Event::SubagentFinished(e) => (format!("subagent {}", e.subagent_run_id), Closes),
        Event::SubagentError(e) => (format!("subagent {}", e.subagent_run_id), Closes),
        _ => return None,
    })
}
