//! The chunked shorthand: one event that opens, continues or replaces an item.
//!
//! Chunks are expanded here, so that everything after the guard, the client included, sees one form
//! only. An item that a chunk opened is closed by whatever can no longer continue it. Each owner, the
//! parent agent or a subagent, has a lane of its own, with at most one such item in it.

use super::{
    Guard,
    entries::{ChunkKind, Chunked, Lane},
    items::agree,
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
    run::drive::EventSink,
};

/// What a chunk turned out to be.
enum Found {
    /// The continuation of this item, of this owner.
    Continues(Chunked, Owner),
    /// The first of a new item.
    Opens,
}

impl Guard {
    /// Closes the chunked items that an explicit event ends.
    pub(super) fn close_chunks_before(&mut self, event: &Event, out: &mut impl EventSink) -> Result<(), Violation> {
        match event {
            // These stand aside from assembly, and a chunk decides for itself.
            Event::Raw(_)
            | Event::ActivitySnapshot(_)
            | Event::ActivityDelta(_)
            | Event::ReasoningEncryptedValue(_)
            | Event::SubagentStarted(_)
            | Event::TextMessageChunk(_)
            | Event::ToolCallChunk(_)
            | Event::ReasoningMessageChunk(_) => Ok(()),
            Event::MessagesSnapshot(_) => {
                while let Some(lane) = self.lanes.first() {
                    let owner = lane.owner.clone();
                    self.close_lane(&owner, out)?;
                }
                Ok(())
            }
            Event::SubagentFinished(e) => self.close_lane(&Some(e.subagent_run_id.clone()), out),
            Event::SubagentError(e) => self.close_lane(&Some(e.subagent_run_id.clone()), out),
            event => self.close_lane(&event.subagent_run_id().cloned(), out),
        }
    }

    fn close_lane(&mut self, owner: &Owner, out: &mut impl EventSink) -> Result<(), Violation> {
        let Some(index) = self.lanes.iter().position(|lane| lane.owner == *owner) else { return Ok(()) };
        let lane = self.lanes.remove(index);
        let end = lane.item.end(lane.owner);
        let open = match &end {
            Event::TextMessageEnd(e) => self.text_end(e)?,
            Event::ToolCallEnd(e) => self.call_end(e)?,
            Event::ReasoningMessageEnd(e) => self.thought_end(e)?,
            _ => false,
        };
        if open {
            out.emit(&end);
        }
        Ok(())
    }

    /// Which item a chunk belongs to. What its lane held before is closed when it opens a new one.
    fn find_chunked(
        &mut self,
        event: EventType,
        kind: ChunkKind,
        id: Option<&str>,
        tag: &Owner,
        out: &mut impl EventSink,
    ) -> Result<Found, Violation> {
        let lane = match id {
            // An id continues wherever it is open.
            Some(id) => match self.lanes.iter().find(|lane| lane.item.kind() == kind && lane.item.id() == id) {
                Some(lane) => {
                    agree(event, "item", &id, &lane.owner, tag)?;
                    lane.owner.clone()
                }
                None => tag.clone(),
            },
            None if tag.is_some() => tag.clone(),
            // Without an id or a tag: the parent agent's, or else the only one of its kind.
            None => {
                let mut of_kind = self.lanes.iter().filter(|lane| lane.item.kind() == kind);
                match (of_kind.clone().find(|lane| lane.owner.is_none()), of_kind.next(), of_kind.next()) {
                    (Some(_), _, _) | (None, None, _) => None,
                    (None, Some(only), None) => only.owner.clone(),
                    (None, Some(_), Some(_)) => {
                        let problem = "it names neither an item nor a subagent, and several could be meant";
                        return Err(Violation::new(event, problem));
                    }
                }
            }
        };
        match self.lanes.iter().find(|open| open.owner == lane) {
            Some(open) if open.item.kind() == kind && id.is_none_or(|id| id == open.item.id()) => {
                Ok(Found::Continues(open.item.clone(), lane))
            }
            _ => {
                self.close_lane(&lane, out)?;
                Ok(Found::Opens)
            }
        }
    }

    pub(super) fn text_chunk(&mut self, chunk: &TextMessageChunk, out: &mut impl EventSink) -> Result<(), Violation> {
        let kind = EventType::TextMessageChunk;
        let found =
            self.find_chunked(kind, ChunkKind::Text, chunk.message_id.as_deref(), &chunk.subagent_run_id, out)?;
        let (id, owner, opened) = match found {
            Found::Continues(Chunked::Text(id), owner) => {
                if let Some(open) = self.texts.get(&id) {
                    let same_role = chunk.role.is_none_or(|role| role == open.detail.role);
                    same(kind, &id, "role", same_role)?;
                    same(kind, &id, "name", chunk.name.is_none() || chunk.name == open.detail.name)?;
                }
                (id, owner, false)
            }
            _ => {
                let id = first(kind, "messageId", chunk.message_id.as_ref())?;
                let mut start = TextMessageStart::new(id.clone());
                start.role = Some(chunk.role.unwrap_or_default());
                start.name = chunk.name.clone();
                start.subagent_run_id = chunk.subagent_run_id.clone();
                start.base = opener_base(&chunk.base);
                if self.text_start(&start)? {
                    out.emit(&start.into());
                }
                self.lanes.push(Lane { owner: chunk.subagent_run_id.clone(), item: Chunked::Text(id.clone()) });
                (id, chunk.subagent_run_id.clone(), true)
            }
        };
        if carries(chunk.delta.as_deref(), &chunk.base, opened) {
            let mut content = TextMessageContent::new(id, chunk.delta.clone().unwrap_or_default());
            content.subagent_run_id = owner;
            content.base = chunk.base.clone();
            if self.text_content(&content)? {
                out.emit(&content.into());
            }
        }
        Ok(())
    }

    pub(super) fn call_chunk(&mut self, chunk: &ToolCallChunk, out: &mut impl EventSink) -> Result<(), Violation> {
        let kind = EventType::ToolCallChunk;
        let found =
            self.find_chunked(kind, ChunkKind::Call, chunk.tool_call_id.as_deref(), &chunk.subagent_run_id, out)?;
        let (id, owner, opened) = match found {
            Found::Continues(Chunked::Call(id), owner) => {
                if let Some(open) = self.calls.get(&id) {
                    let same_name = chunk.tool_call_name.as_ref().is_none_or(|name| *name == open.detail.name);
                    same(kind, &id, "toolCallName", same_name)?;
                    let same_parent =
                        chunk.parent_message_id.is_none() || chunk.parent_message_id == open.detail.parent;
                    same(kind, &id, "parentMessageId", same_parent)?;
                }
                (id, owner, false)
            }
            _ => {
                let id = first(kind, "toolCallId", chunk.tool_call_id.as_ref())?;
                let name = first(kind, "toolCallName", chunk.tool_call_name.as_ref())?;
                let mut start = ToolCallStart::new(id.clone(), name);
                start.parent_message_id = chunk.parent_message_id.clone();
                start.subagent_run_id = chunk.subagent_run_id.clone();
                start.base = opener_base(&chunk.base);
                self.call_start(&start, out)?;
                self.lanes.push(Lane { owner: chunk.subagent_run_id.clone(), item: Chunked::Call(id.clone()) });
                (id, chunk.subagent_run_id.clone(), true)
            }
        };
        if carries(chunk.delta.as_deref(), &chunk.base, opened) {
            let mut args = ToolCallArgs::new(id, chunk.delta.clone().unwrap_or_default());
            args.subagent_run_id = owner;
            args.base = chunk.base.clone();
            if self.call_args(&args)? {
                out.emit(&args.into());
            }
        }
        Ok(())
    }

    pub(super) fn thought_chunk(
        &mut self,
        chunk: &ReasoningMessageChunk,
        out: &mut impl EventSink,
    ) -> Result<(), Violation> {
        let kind = EventType::ReasoningMessageChunk;
        let found =
            self.find_chunked(kind, ChunkKind::Thought, chunk.message_id.as_deref(), &chunk.subagent_run_id, out)?;
        let (id, owner, opened) = match found {
            Found::Continues(Chunked::Thought(id), owner) => (id, owner, false),
            _ => {
                let id = first(kind, "messageId", chunk.message_id.as_ref())?;
                let mut start = ReasoningMessageStart::new(id.clone());
                start.subagent_run_id = chunk.subagent_run_id.clone();
                start.base = opener_base(&chunk.base);
                self.thought_start(&start, out)?;
                self.lanes.push(Lane { owner: chunk.subagent_run_id.clone(), item: Chunked::Thought(id.clone()) });
                (id, chunk.subagent_run_id.clone(), true)
            }
        };
        if carries(chunk.delta.as_deref(), &chunk.base, opened) {
            let mut content = ReasoningMessageContent::new(id, chunk.delta.clone().unwrap_or_default());
            content.subagent_run_id = owner;
            content.base = chunk.base.clone();
            if self.thought_content(&content)? {
                out.emit(&content.into());
            }
        }
        Ok(())
    }
}

/// What a chunk's first event carries of its base: not the provider's event, which goes with the content.
fn opener_base(base: &BaseEvent) -> BaseEvent {
    let mut base = base.clone();
    base.set_raw_event(None);
    base
}

/// Whether a chunk has content of its own. Metadata alone counts only where no opener has taken it.
fn carries(delta: Option<&str>, base: &BaseEvent, opened: bool) -> bool {
    delta.is_some_and(|delta| !delta.is_empty()) || base.raw_event().is_some() || (!opened && !base.is_empty())
}

fn first<T: Clone>(event: EventType, member: &str, value: Option<&T>) -> Result<T, Violation> {
    value.cloned().ok_or_else(|| Violation::new(event, format!("the first chunk of an item needs its {member}")))
}

fn same(event: EventType, id: &str, member: &str, same: bool) -> Result<(), Violation> {
    if same { Ok(()) } else { Err(Violation::new(event, format!("item {id:?} was opened with another {member}"))) }
}
