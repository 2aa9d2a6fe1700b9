//! Messages, and the input that carries them.

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess};

use super::{
    at::At,
    content::Content,
    object::{Object, Objects, Shape},
    union::{EachOneOf, ReadValue, Union},
    value::{List, OpenObject, OptionalJson, Text},
};
use crate::protocol::{
    ActivityMessage, AssistantMessage, Context, DeveloperMessage, FunctionCall, InterruptId, JsonObject, Message,
    MessageContent, MessageId, Metadata, ReasoningMessage, ResumeEntry, ResumeStatus, Role, RunAgentInput, RunId,
    SubagentRunId, SystemMessage, ThreadId, Tool, ToolCall, ToolCallId, ToolCallKind, ToolMessage, UserMessage,
};

/// Reads a whole input.
pub(super) struct InputSeed<'a>(pub(super) At<'a>);

impl<'de> DeserializeSeed<'de> for InputSeed<'_> {
    type Value = RunAgentInput;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RunAgentInput, D::Error> {
        Object::<Input>::at(self.0).deserialize(deserializer)
    }
}

#[derive(Default)]
struct Input {
    thread_id: Option<ThreadId>,
    run_id: Option<RunId>,
    protocol_version: Option<String>,
    parent_run_id: Option<RunId>,
    state: Option<serde_json::Value>,
    messages: Option<Vec<Message>>,
    tools: Option<Vec<Tool>>,
    context: Option<Vec<Context>>,
    forwarded_props: Option<serde_json::Value>,
    resume: Option<Vec<ResumeEntry>>,
}

impl<'de> Shape<'de> for Input {
    type Value = RunAgentInput;
    const MEMBERS: &'static [&'static str] = &[
        "threadId",
        "runId",
        "protocolVersion",
        "parentRunId",
        "state",
        "messages",
        "tools",
        "context",
        "forwardedProps",
        "resume",
    ];

    fn set<A: MapAccess<'de>>(&mut self, member: usize, at: At<'_>, members: &mut A) -> Result<(), A::Error> {
        match Self::MEMBERS[member] {
            "threadId" => self.thread_id = members.next_value_seed(Text::at(at))?,
            "runId" => self.run_id = members.next_value_seed(Text::at(at))?,
            "protocolVersion" => self.protocol_version = members.next_value_seed(Text::at(at))?,
            "parentRunId" => self.parent_run_id = members.next_value_seed(Text::at(at))?,
            "state" => self.state = members.next_value_seed(OptionalJson(at))?,
            "messages" => self.messages = members.next_value_seed(List(at, EachOneOf::<AnyMessage>::OF))?,
            "tools" => self.tools = members.next_value_seed(List(at, Objects::<ToolShape>::OF))?,
            "context" => self.context = members.next_value_seed(List(at, Objects::<ContextShape>::OF))?,
            "forwardedProps" => self.forwarded_props = members.next_value_seed(OptionalJson(at))?,
            _ => self.resume = members.next_value_seed(List(at, Objects::<ResumeShape>::OF))?,
        }
        Ok(())
    }

    fn build<E: de::Error>(self, at: At<'_>) -> Result<RunAgentInput, E> {
        Ok(RunAgentInput {
            thread_id: at.required(self.thread_id, "threadId")?,
            run_id: at.required(self.run_id, "runId")?,
            protocol_version: self.protocol_version,
            parent_run_id: self.parent_run_id,
            state: self.state,
            messages: at.required(self.messages, "messages")?.into(),
            tools: self.tools.unwrap_or_default(),
            context: self.context.unwrap_or_default(),
            forwarded_props: self.forwarded_props,
            resume: self.resume.unwrap_or_default(),
        })
    }
}

#[derive(Default)]
struct ToolShape {
    name: Option<String>,
    description: Option<String>,
    parameters: Option<serde_json::Value>,
    metadata: Option<Metadata>,
}

impl<'de> Shape<'de> for ToolShape {
    type Value = Tool;
    const MEMBERS: &'static [&'static str] = &["name", "description", "parameters", "metadata"];

    fn set<A: MapAccess<'de>>(&mut self, member: usize, at: At<'_>, members: &mut A) -> Result<(), A::Error> {
        match Self::MEMBERS[member] {
            "name" => self.name = members.next_value_seed(Text::at(at))?,
            "description" => self.description = members.next_value_seed(Text::at(at))?,
            "parameters" => self.parameters = members.next_value_seed(OptionalJson(at))?,
            _ => self.metadata = members.next_value_seed(OpenObject(at))?.map(Metadata::from),
        }
        Ok(())
    }

    fn build<E: de::Error>(self, at: At<'_>) -> Result<Tool, E> {
        Ok(Tool {
            name: at.required(self.name, "name")?,
            description: at.required(self.description, "description")?,
            parameters: self.parameters,
            metadata: self.metadata,
        })
    }
}

#[derive(Default)]
struct ContextShape {
    description: Option<String>,
    value: Option<String>,
}

impl<'de> Shape<'de> for ContextShape {
    type Value = Context;
    const MEMBERS: &'static [&'static str] = &["description", "value"];

    fn set<A: MapAccess<'de>>(&mut self, member: usize, at: At<'_>, members: &mut A) -> Result<(), A::Error> {
        match Self::MEMBERS[member] {
            "description" => self.description = members.next_value_seed(Text::at(at))?,
            _ => self.value = members.next_value_seed(Text::at(at))?,
        }
        Ok(())
    }

    fn build<E: de::Error>(self, at: At<'_>) -> Result<Context, E> {
        Ok(Context {
            description: at.required(self.description, "description")?,
            value: at.required(self.value, "value")?,
        })
    }
}

#[derive(Default)]
struct ResumeShape {
    interrupt_id: Option<InterruptId>,
    status: Option<ResumeStatus>,
    payload: Option<serde_json::Value>,
    metadata: Option<Metadata>,
}

impl<'de> Shape<'de> for ResumeShape {
    type Value = ResumeEntry;
    const MEMBERS: &'static [&'static str] = &["interruptId", "status", "payload", "metadata"];

    fn set<A: MapAccess<'de>>(&mut self, member: usize, at: At<'_>, members: &mut A) -> Result<(), A::Error> {
        match Self::MEMBERS[member] {
            "interruptId" => self.interrupt_id = members.next_value_seed(Text::at(at))?,
            "status" => {
                let text: Option<String> = members.next_value_seed(Text::at(at))?;
                self.status = match text.as_deref() {
                    Some("resolved") => Some(ResumeStatus::Resolved),
                    Some("cancelled") => Some(ResumeStatus::Cancelled),
                    Some(_) => return Err(at.fault("expected \"resolved\" or \"cancelled\"")),
                    None => None,
                };
            }
            "payload" => self.payload = members.next_value_seed(OptionalJson(at))?,
            _ => self.metadata = members.next_value_seed(OpenObject(at))?.map(Metadata::from),
        }
        Ok(())
    }

    fn build<E: de::Error>(self, at: At<'_>) -> Result<ResumeEntry, E> {
        Ok(ResumeEntry {
            interrupt_id: at.required(self.interrupt_id, "interruptId")?,
            status: at.required(self.status, "status")?,
            payload: self.payload,
            metadata: self.metadata,
        })
    }
}

#[derive(Default)]
struct ToolCallShape {
    id: Option<ToolCallId>,
    kind: Option<ToolCallKind>,
    function: Option<FunctionCall>,
    encrypted_value: Option<String>,
    metadata: Option<Metadata>,
}

impl<'de> Shape<'de> for ToolCallShape {
    type Value = ToolCall;
    const MEMBERS: &'static [&'static str] = &["id", "type", "function", "encryptedValue", "metadata"];

    fn set<A: MapAccess<'de>>(&mut self, member: usize, at: At<'_>, members: &mut A) -> Result<(), A::Error> {
        match Self::MEMBERS[member] {
            "id" => self.id = members.next_value_seed(Text::at(at))?,
            "type" => {
                let text: Option<String> = members.next_value_seed(Text::at(at))?;
                self.kind = match text.as_deref() {
                    Some("function") => Some(ToolCallKind::Function),
                    Some(_) => return Err(at.fault("expected \"function\"")),
                    None => None,
                };
            }
            "function" => self.function = Some(members.next_value_seed(Object::<FunctionShape>::at(at))?),
            "encryptedValue" => self.encrypted_value = members.next_value_seed(Text::at(at))?,
            _ => self.metadata = members.next_value_seed(OpenObject(at))?.map(Metadata::from),
        }
        Ok(())
    }

    fn build<E: de::Error>(self, at: At<'_>) -> Result<ToolCall, E> {
        Ok(ToolCall {
            id: at.required(self.id, "id")?,
            kind: at.required(self.kind, "type")?,
            function: at.required(self.function, "function")?,
            encrypted_value: self.encrypted_value,
            metadata: self.metadata,
        })
    }
}

#[derive(Default)]
struct FunctionShape {
    name: Option<String>,
    arguments: Option<String>,
}

impl<'de> Shape<'de> for FunctionShape {
    type Value = FunctionCall;
    const MEMBERS: &'static [&'static str] = &["name", "arguments"];

    fn set<A: MapAccess<'de>>(&mut self, member: usize, at: At<'_>, members: &mut A) -> Result<(), A::Error> {
        match Self::MEMBERS[member] {
            "name" => self.name = members.next_value_seed(Text::at(at))?,
            _ => self.arguments = members.next_value_seed(Text::at(at))?,
        }
        Ok(())
    }

    fn build<E: de::Error>(self, at: At<'_>) -> Result<FunctionCall, E> {
        Ok(FunctionCall { name: at.required(self.name, "name")?, arguments: at.required(self.arguments, "arguments")? })
    }
}

#[derive(Default)]
struct AnyMessage {
    id: Option<MessageId>,
    text: Option<String>,
    content: Option<MessageContent>,
    activity: Option<JsonObject>,
    name: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
    tool_call_id: Option<ToolCallId>,
    error: Option<String>,
    encrypted_value: Option<String>,
    activity_type: Option<String>,
    metadata: Option<Metadata>,
    subagent_run_id: Option<SubagentRunId>,
}

impl<'de> Union<'de> for AnyMessage {
    type Value = Message;
    type Kind = Role;
    const MEMBERS: &'static [&'static str] = &[
        "role",
        "id",
        "content",
        "name",
        "toolCalls",
        "toolCallId",
        "error",
        "encryptedValue",
        "activityType",
        "metadata",
        "subagentRunId",
    ];

    fn kind(text: &str) -> Option<Role> {
        Role::from_wire(text)
    }

    fn describes(role: Role, member: &str) -> bool {
        match member {
            "name" => !matches!(role, Role::Tool | Role::Activity | Role::Reasoning),
            "toolCalls" => role == Role::Assistant,
            "toolCallId" | "error" => role == Role::Tool,
            "encryptedValue" => role != Role::Activity,
            "activityType" => role == Role::Activity,
            _ => true,
        }
    }

    fn set<R: ReadValue<'de>>(&mut self, role: Role, member: &str, at: At<'_>, value: R) -> Result<(), R::Error> {
        match member {
            "id" => self.id = value.read(Text::at(at))?,
            "content" => match role {
                Role::User | Role::Tool => self.content = value.read(Content(at))?,
                Role::Activity => self.activity = value.read(OpenObject(at))?,
                _ => self.text = value.read(Text::at(at))?,
            },
            "name" => self.name = value.read(Text::at(at))?,
            "toolCalls" => self.tool_calls = value.read(List(at, Objects::<ToolCallShape>::OF))?,
            "toolCallId" => self.tool_call_id = value.read(Text::at(at))?,
            "error" => self.error = value.read(Text::at(at))?,
            "encryptedValue" => self.encrypted_value = value.read(Text::at(at))?,
            "activityType" => self.activity_type = value.read(Text::at(at))?,
            "metadata" => self.metadata = value.read(OpenObject(at))?.map(Metadata::from),
            _ => self.subagent_run_id = value.read(Text::at(at))?,
        }
        Ok(())
    }

    fn build<E: de::Error>(self, role: Role, at: At<'_>) -> Result<Option<Message>, E> {
        let Self { name, encrypted_value, metadata, subagent_run_id, .. } = self;
        let id = at.required(self.id, "id")?;
        Ok(Some(match role {
            Role::Developer => Message::Developer(DeveloperMessage {
                id,
                content: at.required(self.text, "content")?,
                name,
                encrypted_value,
                metadata,
                subagent_run_id,
            }),
            Role::System => Message::System(SystemMessage {
                id,
                content: at.required(self.text, "content")?,
                name,
                encrypted_value,
                metadata,
                subagent_run_id,
            }),
            Role::Assistant => Message::Assistant(AssistantMessage {
                id,
                content: self.text,
                name,
                tool_calls: self.tool_calls,
                encrypted_value,
                metadata,
                subagent_run_id,
            }),
            Role::User => Message::User(UserMessage {
                id,
                content: at.required(self.content, "content")?,
                name,
                encrypted_value,
                metadata,
                subagent_run_id,
            }),
            Role::Tool => Message::Tool(ToolMessage {
                id,
                content: at.required(self.content, "content")?,
                tool_call_id: at.required(self.tool_call_id, "toolCallId")?,
                error: self.error,
                encrypted_value,
                metadata,
                subagent_run_id,
            }),
            Role::Activity => Message::Activity(ActivityMessage {
                id,
                activity_type: at.required(self.activity_type, "activityType")?,
                content: at.required(self.activity, "content")?,
                metadata,
                subagent_run_id,
            }),
            Role::Reasoning => Message::Reasoning(ReasoningMessage {
                id,
                content: at.required(self.text, "content")?,
                encrypted_value,
                metadata,
                subagent_run_id,
            }),
        }))
    }

    fn set_id(&mut self, id: &str) {
        self.id = Some(id.into());
    }

    fn note_unknown(at: &At<'_>, role: &str) {
        at.log.drop_message(at, role);
    }

    /// Moving a long history each time its list has to grow is a good part of reading it. Messages are
    /// rarely shorter than this, and not so many that the room would be worth an attacker's while.
    fn expected(body_len: usize) -> usize {
        (body_len / 200).min(2048)
    }
}
