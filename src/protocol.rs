//! AG-UI 1.1 as plain types: the input that a client sends, and the events that this server sends.
//!
//! Field names in JSON are camelCase. An optional field without a value is omitted, never written as `null`. Source of the rules:
//! the AG-UI 1.1 schema and prose (`docs/spec` in `ag-ui-protocol/ag-ui`).

#[doc(inline)]
pub use agui_protocol::{
    ActivityMessage, AgentCapabilities, AssistantMessage, ContentPart, Context, DeveloperMessage,
    Event, EventType, FunctionCall, Interrupt, InterruptId, JsonObject, MediaPart, Message,
    MessageContent, MessageId, Messages, Metadata, PartSource, PatchKind, PatchOperation,
    ReasoningMessage, ResumeEntry, ResumeStatus, Role, RunAgentInput, RunId, SubagentRunId,
    SystemMessage, TextPart, ThreadId, TokenUsage, ToolCall, ToolCallId, ToolCallKind,
    ToolDefinition, ToolMessage, UserMessage, capabilities, event,
};
