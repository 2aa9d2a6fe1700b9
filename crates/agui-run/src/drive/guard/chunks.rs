//! Expands the `*_CHUNK` events into start, content and end events.
//!
//! Each owner, the parent agent or a subagent, has at most one item that chunks opened. The item is closed by the next
//! event of its owner that cannot continue it.

use super::{
    Guard,
    entries::ChunkedItem,
    items::check_owner,
    violation::{Owner, Violation},
};
use crate::drive::progress::EventSink;
use agui_protocol::{
    Event, EventType,
    event::{
        BaseEvent, ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart,
        TextMessageContent, TextMessageEnd, TextMessageStart, ToolCallArgs, ToolCallEnd,
        ToolCallStart,
    },
};

impl Guard {
    pub(crate) fn close_chunks_before(
        &mut self,
        event: &Event,
        out: &mut impl EventSink,
    ) -> Result<(), Violation> {
        match event {
            // These do not affect open items; chunks are handled by `find_chunked_item`.
            Event::Raw(_)
            | Event::ActivitySnapshot(_)
            | Event::ActivityDelta(_)
            | Event::ReasoningEncryptedValue(_)
            | Event::SubagentStarted(_)
            | Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => Ok(()),
            Event::MessagesSnapshot(_) => {
                while let Some(open) = self.open_chunks.first() {
                    let owner = open.owner.clone();
                    self.close_chunked_item(&owner, out)?;
                }
                Ok(())
            }
            Event::SubagentFinished(e) => {
                self.close_chunked_item(&Some(e.subagent_run_id.clone()), out)
            }
            Event::SubagentError(e) => {
                self.close_chunked_item(&Some(e.subagent_run_id.clone()), out)
            }
            event => self.close_chunked_item(&event.subagent_run_id().cloned(), out),
        }
    }

    fn close_chunked_item(
        &mut self,
        owner: &Owner,
        out: &mut impl EventSink,
    ) -> Result<(), Violation> {
        let Some(index) = self.open_chunks.iter().position(|open| open.owner == *owner) else {
            return Ok(());
        };
        let ChunkedItem { kind, id, owner } = self.open_chunks.remove(index);
        let end: Event = match kind {
            EventType::TextMessageChunk => TextMessageEnd::new(id).into(),
            EventType::ToolCallChunk => ToolCallEnd::new(id).into(),
            _ => ReasoningMessageEnd::new(id).into(),
        };
        self.pass(end.attributed_to(owner), out)
    }

    /// Opens the item of a chunk event, or continues it.
    pub fn chunk(&mut self, chunk: &Event, out: &mut impl EventSink) -> Result<(), Violation> {
        let (kind, owner) = (chunk.event_type(), chunk.subagent_run_id().cloned());
        let (member, id, delta) = match chunk {
            Event::TextMessageChunk(e) => ("messageId", e.message_id.as_deref(), &e.delta),
            Event::ToolCallChunk(e) => ("toolCallId", e.tool_call_id.as_deref(), &e.delta),
            Event::ReasoningMessageChunk(e) => ("messageId", e.message_id.as_deref(), &e.delta),
            _ => return Ok(()),
        };
        let open = self.find_chunked_item(kind, id, &owner, out)?;
        let is_new = open.is_none();
        let item = match open {
            Some(open) => {
                self.check_same_item(chunk, &open.id)?;
                open
            }
            None => {
                let item = ChunkedItem { kind, id: required(kind, member, id)?.into(), owner };
                let mut start = start_of(chunk, &item.id)?.attributed_to(item.owner.clone());
                *start.base_mut() = start_base(chunk.base());
                self.pass(start, out)?;
                self.open_chunks.push(item.clone());
                item
            }
        };
        if !needs_content(delta.as_deref(), chunk.base(), is_new) {
            return Ok(());
        }
        let delta = delta.clone().unwrap_or_default();
        let mut content: Event = match kind {
            EventType::TextMessageChunk => TextMessageContent::new(item.id, delta).into(),
            EventType::ToolCallChunk => ToolCallArgs::new(item.id, delta).into(),
            _ => ReasoningMessageContent::new(item.id, delta).into(),
        };
        *content.base_mut() = chunk.base().clone();
        self.pass(content.attributed_to(item.owner), out)
    }

    /// Returns the open item that a chunk continues. Without one, closes the other item of its
    /// owner.
    fn find_chunked_item(
        &mut self,
        kind: EventType,
        id: Option<&str>,
        subagent: &Owner,
        out: &mut impl EventSink,
    ) -> Result<Option<ChunkedItem>, Violation> {
        let mut of_kind = self.open_chunks.iter().filter(|open| open.kind == kind);
        let owner = match id {
            Some(id) => match of_kind.find(|open| *open.id == *id) {
                Some(open) => {
                    check_owner(kind, "item", &id, &open.owner, subagent)?;
                    open.owner.clone()
                }
                None => subagent.clone(),
            },
            None if subagent.is_some() => subagent.clone(),
            // Without an id and a subagent, it is the item of the parent agent, or the only one of
            // this kind.
            None => match (
                of_kind.clone().find(|open| open.owner.is_none()),
                of_kind.next(),
                of_kind.next(),
            ) {
                (Some(_), _, _) | (None, None, _) => None,
                (None, Some(only), None) => only.owner.clone(),
                (None, Some(_), Some(_)) => {
                    let problem =
                        "it names neither an item nor a subagent, and several items are open";
                    return Err(Violation::new(kind, problem));
                }
            },
        };
        let open = self.open_chunks.iter().find(|open| open.owner == owner);
        let open =
            open.filter(|open| open.kind == kind && id.is_none_or(|id| *id == *open.id)).cloned();
        if open.is_none() {
            self.close_chunked_item(&owner, out)?;
        }
        Ok(open)
    }

    /// Checks that a chunk repeats or leaves out the members that the item was opened with.
    fn check_same_item(&self, chunk: &Event, id: &str) -> Result<(), Violation> {
        let check = |member: &str, is_same: bool| match is_same {
            true => Ok(()),
            false => Err(Violation::new(
                chunk.event_type(),
                format!("item {id:?} was opened with another {member}"),
            )),
        };
        match chunk {
            Event::TextMessageChunk(chunk) => self.texts.get(id).map_or(Ok(()), |open| {
                check("role", chunk.role.is_none_or(|role| role == open.details.role))?;
                check("name", chunk.name.is_none() || chunk.name == open.details.name)
            }),
            Event::ToolCallChunk(chunk) => self.calls.get(id).map_or(Ok(()), |open| {
                check(
                    "toolCallName",
                    chunk.tool_call_name.as_ref().is_none_or(|name| *name == open.details.name),
                )?;
                let parent = &chunk.parent_message_id;
                check("parentMessageId", parent.is_none() || *parent == open.details.parent)
            }),
            _ => Ok(()),
        }
    }
}

/// Returns the start event of an item, from its first chunk.
fn start_of(chunk: &Event, id: &str) -> Result<Event, Violation> {
    Ok(match chunk {
        Event::TextMessageChunk(chunk) => {
            let role = Some(chunk.role.unwrap_or_default());
            TextMessageStart { role, name: chunk.name.clone(), ..TextMessageStart::new(id) }.into()
        }
        Event::ToolCallChunk(chunk) => {
            let name = required(
                EventType::ToolCallChunk,
                "toolCallName",
                chunk.tool_call_name.as_deref(),
            )?;
            let parent_message_id = chunk.parent_message_id.clone();
            ToolCallStart { parent_message_id, ..ToolCallStart::new(id, name) }.into()
        }
        _ => ReasoningMessageStart::new(id).into(),
    })
}

/// Returns the base of the start event: the chunk's base without the provider's event, which the content event carries.
fn start_base(base: &BaseEvent) -> BaseEvent {
    let mut base = base.clone();
    base.set_raw_event(None);
    base
}

/// Metadata alone needs a content event unless the start event carries it.
fn needs_content(delta: Option<&str>, base: &BaseEvent, is_new: bool) -> bool {
    delta.is_some_and(|delta| !delta.is_empty())
        || base.raw_event().is_some()
        || (!is_new && !base.is_empty())
}

fn required<'v>(
    event: EventType,
    member: &str,
    value: Option<&'v str>,
) -> Result<&'v str, Violation> {
    value.ok_or_else(|| {
        Violation::new(event, format!("the first chunk of an item needs its {member}"))
    })
}
