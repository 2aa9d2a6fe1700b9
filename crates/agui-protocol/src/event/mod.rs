//! The 31 events of AG-UI 1.1: one struct each, in a file for each group of the specification, and [`Event`], any one.
//!
//! A `subagent_run_id` of `None` means the parent agent. A new event is a struct in its file and a line in `events!`.

mod activity;
mod base;
mod lifecycle;
mod passthrough;
mod reasoning;
mod state;
mod subagent;
mod text_message;
mod tool_call;

pub use activity::{ActivityDelta, ActivitySnapshot};
pub use base::BaseEvent;
pub use lifecycle::run_error_code;
pub use lifecycle::{RunError, RunFinished, RunOutcome, RunStarted, StepFinished, StepStarted};
pub use passthrough::{Custom, Raw};
pub use reasoning::{
    EncryptedValueSubtype, ReasoningEncryptedValue, ReasoningEnd, ReasoningMessageChunk,
    ReasoningMessageContent, ReasoningMessageEnd, ReasoningMessageStart, ReasoningRole,
    ReasoningStart,
};
pub use state::{MessagesSnapshot, StateDelta, StateSnapshot};
pub use subagent::{SubagentError, SubagentFinished, SubagentOutcome, SubagentStarted};
pub use text_message::{
    TextMessageChunk, TextMessageContent, TextMessageEnd, TextMessageRole, TextMessageStart,
};
pub use tool_call::{
    ToolCallArgs, ToolCallChunk, ToolCallEnd, ToolCallResult, ToolCallStart, ToolRole,
};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::SubagentRunId;

/// Defines [`Event`] and [`EventType`] from one line an event: variant and its type, type in JSON, numbers in protobuf,
/// attributable to a subagent or not.
macro_rules! events {
    ($($variant:ident($type:ty) = $name:tt $numbers:tt, $tag:tt;)*) => {
        /// Any event of a run. Large ones are boxed, so that the others are cheap to move.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
        #[serde(tag = "type")]
        pub enum Event {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $variant(#[schema(inline)] $type),
            )*
        }

        /// The value of the member `type` of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventType {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        impl EventType {
            /// All types in the order of the schema.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the type as it is written in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the field number of the event in a protobuf frame, and its number in the type enumeration.
            pub(crate) fn proto_numbers(self) -> (u32, u64) {
                match self { $(Self::$variant => $numbers,)* }
            }
        }

        impl Event {
            /// Returns the event's type.
            pub fn event_type(&self) -> EventType {
                match self { $(Self::$variant(_) => EventType::$variant,)* }
            }

            /// Returns the fields that every event has.
            pub fn base(&self) -> &BaseEvent {
                match self { $(Self::$variant(event) => &event.base,)* }
            }

            /// Returns the fields that every event has, for changing them.
            pub fn base_mut(&mut self) -> &mut BaseEvent {
                match self { $(Self::$variant(event) => &mut event.base,)* }
            }

            /// Returns the subagent invocation that the event is attributed to; `None` is the parent agent or the run.
            /// `SUBAGENT_*` events name an invocation without being attributed to it.
            pub fn subagent_run_id(&self) -> Option<&SubagentRunId> {
                match self { $(Self::$variant(event) => events!(@tag event $tag),)* }
            }

            /// Attributes the event to a subagent invocation. Leaves run-scoped and `SUBAGENT_*` events unchanged.
            pub fn attributed_to(mut self, owner: Option<SubagentRunId>) -> Self {
                match &mut self { $(Self::$variant(event) => events!(@attribute event owner $tag),)* }
                self
            }
        }

        $(
            impl From<$variant> for Event {
                fn from(event: $variant) -> Self {
                    Self::$variant(event.into())
                }
            }
        )*
    };
    (@tag $event:ident attributable) => { $event.subagent_run_id.as_ref() };
    (@attribute $event:ident $owner:ident attributable) => { $event.subagent_run_id = $owner };
    (@attribute $event:ident $owner:ident run_scoped) => {{ let _ = $event; }};
    (@tag $event:ident run_scoped) => {{ let _ = $event; None }};
}

events! {
    TextMessageStart(TextMessageStart) = "TEXT_MESSAGE_START" (1, 0), attributable;
    TextMessageContent(TextMessageContent) = "TEXT_MESSAGE_CONTENT" (2, 1), attributable;
    TextMessageEnd(TextMessageEnd) = "TEXT_MESSAGE_END" (3, 2), attributable;
    TextMessageChunk(TextMessageChunk) = "TEXT_MESSAGE_CHUNK" (17, 19), attributable;
    ToolCallStart(ToolCallStart) = "TOOL_CALL_START" (4, 3), attributable;
    ToolCallArgs(ToolCallArgs) = "TOOL_CALL_ARGS" (5, 4), attributable;
    ToolCallEnd(ToolCallEnd) = "TOOL_CALL_END" (6, 5), attributable;
    ToolCallChunk(ToolCallChunk) = "TOOL_CALL_CHUNK" (18, 20), attributable;
    ToolCallResult(ToolCallResult) = "TOOL_CALL_RESULT" (22, 21), attributable;
    StateSnapshot(StateSnapshot) = "STATE_SNAPSHOT" (7, 6), attributable;
    StateDelta(StateDelta) = "STATE_DELTA" (8, 7), attributable;
    MessagesSnapshot(MessagesSnapshot) = "MESSAGES_SNAPSHOT" (9, 8), run_scoped;
    ActivitySnapshot(Box<ActivitySnapshot>) = "ACTIVITY_SNAPSHOT" (23, 22), attributable;
    ActivityDelta(ActivityDelta) = "ACTIVITY_DELTA" (24, 23), attributable;
    Raw(Box<Raw>) = "RAW" (10, 9), attributable;
    Custom(Box<Custom>) = "CUSTOM" (11, 10), attributable;
    RunStarted(RunStarted) = "RUN_STARTED" (12, 11), run_scoped;
    RunFinished(Box<RunFinished>) = "RUN_FINISHED" (13, 12), run_scoped;
    RunError(RunError) = "RUN_ERROR" (14, 13), run_scoped;
    StepStarted(StepStarted) = "STEP_STARTED" (15, 14), attributable;
    StepFinished(StepFinished) = "STEP_FINISHED" (16, 15), attributable;
    ReasoningStart(ReasoningStart) = "REASONING_START" (25, 24), attributable;
    ReasoningMessageStart(ReasoningMessageStart) = "REASONING_MESSAGE_START" (26, 25), attributable;
    ReasoningMessageContent(ReasoningMessageContent) = "REASONING_MESSAGE_CONTENT" (27, 26), attributable;
    ReasoningMessageEnd(ReasoningMessageEnd) = "REASONING_MESSAGE_END" (28, 27), attributable;
    ReasoningMessageChunk(ReasoningMessageChunk) = "REASONING_MESSAGE_CHUNK" (29, 28), attributable;
    ReasoningEnd(ReasoningEnd) = "REASONING_END" (30, 29), attributable;
    ReasoningEncryptedValue(ReasoningEncryptedValue) = "REASONING_ENCRYPTED_VALUE" (31, 30), attributable;
    SubagentStarted(Box<SubagentStarted>) = "SUBAGENT_STARTED" (19, 16), run_scoped;
    SubagentFinished(Box<SubagentFinished>) = "SUBAGENT_FINISHED" (20, 17), run_scoped;
    SubagentError(SubagentError) = "SUBAGENT_ERROR" (21, 18), run_scoped;
}

#[cfg(test)]
mod tests;
