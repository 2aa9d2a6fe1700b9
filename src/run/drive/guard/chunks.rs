//! Expands the `*_CHUNK` events into start, content and end events.
//!
//! Each owner, the parent agent or a subagent, has at most one item that chunks opened. The item is closed by the next
//! event of its owner that cannot continue it.

use super::{
    Guard,
    entries::{ChunkKind, ChunkedItem, OwnedChunk},
    items::check_owner,
    violation::{Owner, Violation},
};
use crate::{
    protocol::{
        Event, EventType,
        event::{
            BaseEvent, ReasoningMessageChunk, ReasoningMessageContent, ReasoningMessageStart, TextMessageChunk,
            TextMessageContent, TextMessageStart, ToolCallArgs, ToolCallChunk, ToolCallStart,
        },
    },
    run::drive::progress::EventSink,
};

enum ChunkTarget {
    Continues(ChunkedItem, Owner),
    Opens,
}

impl Guard {
    pub(crate) fn close_chunks_before(&mut self, event: &Event, out: &mut impl EventSink) -> Result<(), Violation> {
        match event {
            // These do not affect open items; chunks are handled by `find_chunk_target`.
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
            Event::SubagentFinished(e) => self.close_chunked_item(&Some(e.subagent_run_id.clone()), out),
            Event::SubagentError(e) => self.close_chunked_item(&Some(e.subagent_run_id.clone()), out),
            event => self.close_chunked_item(&event.subagent_run_id().cloned(), out),
        }
    }

    fn close_chunked_item(&mut self, owner: &Owner, out: &mut impl EventSink) -> Result<(), Violation> {
        let Some(index) = self.open_chunks.iter().position(|open| open.owner == *owner) else { return Ok(()) };
        let closed = self.open_chunks.remove(index);
        let end = closed.item.end(closed.owner);
        let was_open = match &end {
            Event::TextMessageEnd(e) => self.text_end(e)?,
            Event::ToolCallEnd(e) => self.call_end(e)?,
            Event::ReasoningMessageEnd(e) => self.reasoning_message_end(e)?,
            _ => false,
        };
        if was_open {
            out.emit(&end);
        }
        Ok(())
    }

    fn find_chunk_target(
        &mut self,
        event: EventType,
        kind: ChunkKind,
        id: Option<&str>,
        subagent: &Owner,
        out: &mut impl EventSink,
    ) -> Result<ChunkTarget, Violation> {
        let owner = match id {
            Some(id) => match self.open_chunks.iter().find(|open| open.item.kind() == kind && open.item.id() == id) {
                Some(open) => {
                    check_owner(event, "item", &id, &open.owner, subagent)?;
                    open.owner.clone()
                }
                None => subagent.clone(),
            },
            None if subagent.is_some() => subagent.clone(),
            // Without an id and a subagent: the item of the parent agent, or the only open item of this kind.
            None => {
                let mut of_kind = self.open_chunks.iter().filter(|open| open.item.kind() == kind);
                match (of_kind.clone().find(|open| open.owner.is_none()), of_kind.next(), of_kind.next()) {
                    (Some(_), _, _) | (None, None, _) => None,
                    (None, Some(only), None) => only.owner.clone(),
                    (None, Some(_), Some(_)) => {
                        let problem = "it names neither an item nor a subagent, and several items are open";
                        return Err(Violation::new(event, problem));
                    }
                }
            }
        };
        match self.open_chunks.iter().find(|open| open.owner == owner) {
            Some(open) if open.item.kind() == kind && id.is_none_or(|id| id == open.item.id()) => {
                Ok(ChunkTarget::Continues(open.item.clone(), owner))
            }
            _ => {
                self.close_chunked_item(&owner, out)?;
                Ok(ChunkTarget::Opens)
            }
        }
    }

    pub(crate) fn text_chunk(&mut self, chunk: &TextMessageChunk, out: &mut impl EventSink) -> Result<(), Violation> {
        let kind = EventType::TextMessageChunk;
        let target =
            self.find_chunk_target(kind, ChunkKind::Text, chunk.message_id.as_deref(), &chunk.subagent_run_id, out)?;
        let (id, owner, is_new) = match target {
            ChunkTarget::Continues(ChunkedItem::Text(id), owner) => {
                if let Some(open) = self.texts.get(&id) {
                    let same_role = chunk.role.is_none_or(|role| role == open.details.role);
                    check_same(kind, &id, "role", same_role)?;
                    check_same(kind, &id, "name", chunk.name.is_none() || chunk.name == open.details.name)?;
                }
                (id, owner, false)
            }
            _ => {
                let id = required(kind, "messageId", chunk.message_id.as_ref())?;
                let mut start = TextMessageStart::new(id.clone());
                start.role = Some(chunk.role.unwrap_or_default());
                start.name = chunk.name.clone();
                start.subagent_run_id = chunk.subagent_run_id.clone();
                start.base = start_base(&chunk.base);
                if self.text_start(&start)? {
                    out.emit(&start.into());
                }
                self.open_chunks
                    .push(OwnedChunk { owner: chunk.subagent_run_id.clone(), item: ChunkedItem::Text(id.clone()) });
                (id, chunk.subagent_run_id.clone(), true)
            }
        };
        if needs_content(chunk.delta.as_deref(), &chunk.base, is_new) {
            let mut content = TextMessageContent::new(id, chunk.delta.clone().unwrap_or_default());
            content.subagent_run_id = owner;
            content.base = chunk.base.clone();
            if self.text_content(&content)? {
                out.emit(&content.into());
            }
        }
        Ok(())
    }

    pub(crate) fn call_chunk(&mut self, chunk: &ToolCallChunk, out: &mut impl EventSink) -> Result<(), Violation> {
        let kind = EventType::ToolCallChunk;
        let target =
            self.find_chunk_target(kind, ChunkKind::Call, chunk.tool_call_id.as_deref(), &chunk.subagent_run_id, out)?;
        let (id, owner, is_new) = match target {
            ChunkTarget::Continues(ChunkedItem::Call(id), owner) => {
                if let Some(open) = self.calls.get(&id) {
                    let same_name = chunk.tool_call_name.as_ref().is_none_or(|name| *name == open.details.name);
                    check_same(kind, &id, "toolCallName", same_name)?;
                    let same_parent =
                        chunk.parent_message_id.is_none() || chunk.parent_message_id == open.details.parent;
                    check_same(kind, &id, "parentMessageId", same_parent)?;
                }
                (id, owner, false)
            }
            _ => {
                let id = required(kind, "toolCallId", chunk.tool_call_id.as_ref())?;
                let name = required(kind, "toolCallName", chunk.tool_call_name.as_ref())?;
                let mut start = ToolCallStart::new(id.clone(), name);
                start.parent_message_id = chunk.parent_message_id.clone();
                start.subagent_run_id = chunk.subagent_run_id.clone();
                start.base = start_base(&chunk.base);
                self.call_start(&start, out)?;
                self.open_chunks
                    .push(OwnedChunk { owner: chunk.subagent_run_id.clone(), item: ChunkedItem::Call(id.clone()) });
                (id, chunk.subagent_run_id.clone(), true)
            }
        };
        if needs_content(chunk.delta.as_deref(), &chunk.base, is_new) {
            let mut args = ToolCallArgs::new(id, chunk.delta.clone().unwrap_or_default());
            args.subagent_run_id = owner;
            args.base = chunk.base.clone();
            if self.call_args(&args)? {
                out.emit(&args.into());
            }
        }
        Ok(())
    }

    pub(crate) fn reasoning_chunk(
        &mut self,
        chunk: &ReasoningMessageChunk,
        out: &mut impl EventSink,
    ) -> Result<(), Violation> {
        let kind = EventType::ReasoningMessageChunk;
        let target = self.find_chunk_target(
            kind,
            ChunkKind::Reasoning,
            chunk.message_id.as_deref(),
            &chunk.subagent_run_id,
            out,
        )?;
        let (id, owner, is_new) = match target {
            ChunkTarget::Continues(ChunkedItem::Reasoning(id), owner) => (id, owner, false),
            _ => {
                let id = required(kind, "messageId", chunk.message_id.as_ref())?;
                let mut start = ReasoningMessageStart::new(id.clone());
                start.subagent_run_id = chunk.subagent_run_id.clone();
                start.base = start_base(&chunk.base);
                self.reasoning_message_start(&start, out)?;
                self.open_chunks.push(OwnedChunk {
                    owner: chunk.subagent_run_id.clone(),
                    item: ChunkedItem::Reasoning(id.clone()),
                });
                (id, chunk.subagent_run_id.clone(), true)
            }
        };
        if needs_content(chunk.delta.as_deref(), &chunk.base, is_new) {
            let mut content = ReasoningMessageContent::new(id, chunk.delta.clone().unwrap_or_default());
            content.subagent_run_id = owner;
            content.base = chunk.base.clone();
            if self.reasoning_message_content(&content)? {
                out.emit(&content.into());
            }
        }
        Ok(())
    }
}

/// Returns the base of the start event: the chunk's base without the provider's event, which the content event carries.
fn start_base(base: &BaseEvent) -> BaseEvent {
    let mut base = base.clone();
    base.set_raw_event(None);
    base
}

/// Metadata alone needs a content event unless the start event carries it.
fn needs_content(delta: Option<&str>, base: &BaseEvent, is_new: bool) -> bool {
    delta.is_some_and(|delta| !delta.is_empty()) || base.raw_event().is_some() || (!is_new && !base.is_empty())
}

fn required<T: Clone>(event: EventType, member: &str, value: Option<&T>) -> Result<T, Violation> {
    value.cloned().ok_or_else(|| Violation::new(event, format!("the first chunk of an item needs its {member}")))
}

fn check_same(event: EventType, id: &str, member: &str, is_same: bool) -> Result<(), Violation> {
    if is_same { Ok(()) } else { Err(Violation::new(event, format!("item {id:?} was opened with another {member}"))) }
}
