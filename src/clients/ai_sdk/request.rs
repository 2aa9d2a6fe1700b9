//! The request for a run. The page names no run, so its id is derived from what the page asks: the
//! same request again asks for the same run.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::{
    encoder::{AiSdkEncoder, ContinuedMessage},
    page_message::{PageMessage, PageRole},
};
use crate::http::{ApiError, ApiResult};
use agui_base::text::hex;
use agui_protocol::{
    Context, Interrupt, Message, MessageId, RunAgentInput, RunId, ThreadId, ToolDefinition,
    decode::decode_value,
};

/// The bytes of the digest in the id of a run.
const DIGEST_BYTES: usize = 16;

/// The request body. Other members are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AiSdkRequest)]
pub(super) struct ChatBody {
    /// The chat, which is a thread.
    #[schema(value_type = String)]
    pub(super) id: ThreadId,
    /// The messages that the page shows.
    #[serde(default)]
    messages: Vec<PageMessage>,
    /// The newest message alone, in place of `messages`.
    message: Option<PageMessage>,
    /// `submit-message` by default.
    #[schema(pattern = "^(submit-message|regenerate-message)$")]
    trigger: Option<String>,
    /// With `regenerate-message`, the answer to replace. The last one by default.
    #[schema(value_type = Option<String>)]
    message_id: Option<MessageId>,
    /// The tools of the page: an object of them by name, or a list. Each has `description`, and its
    /// JSON Schema as `inputSchema` or `parameters`.
    tools: Option<Value>,
    state: Option<Value>,
    #[serde(default)]
    context: Vec<Context>,
    forwarded_props: Option<Value>,
}

/// A request that was read.
pub(super) struct ChatRun {
    pub(super) input: RunAgentInput,
    pub(super) encoder: AiSdkEncoder,
}

impl ChatBody {
    /// Reads a body.
    pub(super) fn read(body: &[u8]) -> ApiResult<Self> {
        let value = decode_value(body)?;
        let mut read: Self = Self::deserialize(value).map_err(|error| {
            let message = format!("the body is not a request of the AI SDK: {error}");
            ApiError::InvalidInput { path: String::new(), message }
        })?;
        read.messages.extend(read.message.take());
        if read.regenerates() {
            read.leave_out_answer();
        }
        match read.messages.last() {
            Some(_) => Ok(read),
            None => Err(ApiError::invalid_input("messages", "a message to answer")),
        }
    }

    /// Returns whether the page wants another answer to the same messages.
    pub(super) fn regenerates(&self) -> bool {
        self.trigger.as_deref() == Some("regenerate-message")
    }

    fn leave_out_answer(&mut self) {
        let named = |message: &PageMessage| {
            message.role == PageRole::Assistant && self.message_id.as_ref() == Some(&message.id)
        };
        if let Some(at) = self.messages.iter().position(named) {
            self.messages.truncate(at);
        }
        while self.messages.pop_if(|last| last.role == PageRole::Assistant).is_some() {}
    }

    /// Returns the message that the run continues: the page sends its own answer back.
    fn continued(&self) -> Option<&PageMessage> {
        self.messages.last().filter(|last| last.role == PageRole::Assistant)
    }

    /// Returns whether the open interrupts are needed to read the request.
    pub(super) fn may_reply(&self) -> bool {
        self.continued().is_some_and(PageMessage::may_reply)
    }

    /// Returns the input of the run. `open` are the open interrupts of the thread.
    pub(super) fn into_request(self, agent: &str, open: &[Interrupt]) -> ApiResult<ChatRun> {
        let resume = self.continued().map(|last| last.replies(open)).unwrap_or_default();
        let is_answered =
            |interrupt: &&Interrupt| resume.iter().any(|reply| reply.interrupt_id == interrupt.id);
        let answered: HashSet<_> = open
            .iter()
            .filter(is_answered)
            .filter_map(|asked| asked.tool_call_id.clone())
            .collect();
        let mut messages: Vec<Message> = Vec::new();
        let mut first_of_last = 0;
        for message in &self.messages {
            first_of_last = messages.len();
            messages.extend(message.to_messages(&answered));
        }
        let tools = read_tools(self.tools.as_ref())?;
        let mut encoder = AiSdkEncoder::new(tools.iter().map(|tool| tool.name.clone()));
        if let Some(last) = self.continued() {
            let continued = ContinuedMessage::new(last, &messages[first_of_last..]);
            encoder = encoder.continuing(continued);
        }
        let run_id = self.run_id(agent);
        let Self { id, state, context, forwarded_props, .. } = self;
        let input = RunAgentInput {
            tools,
            state,
            context,
            forwarded_props,
            resume,
            ..RunAgentInput::new(id, run_id, messages)
        };
        Ok(ChatRun { input, encoder })
    }

    /// Returns a new id for another answer, and for a message without an id.
    fn run_id(&self, agent: &str) -> RunId {
        let asking = self.messages.last().filter(|last| !last.id.is_empty());
        let Some(asking) = asking.filter(|_| !self.regenerates()) else { return RunId::random() };
        let mut digest = Sha256::new();
        for part in [agent, &*self.id, &asking.asked().to_string()] {
            digest.update(part);
            digest.update([0]);
        }
        format!("run_{}", hex(&digest.finalize()[..DIGEST_BYTES])).into()
    }
}

fn read_tools(tools: Option<&Value>) -> ApiResult<Vec<ToolDefinition>> {
    let expected = || ApiError::invalid_input("tools", "an object of tools by name, or a list");
    match tools {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(tools)) => {
            let tools = tools.iter().map(|(name, tool)| Some(read_tool(name, tool.as_object()?)));
            tools.collect::<Option<_>>().ok_or_else(expected)
        }
        Some(Value::Array(tools)) => {
            let tools = tools.iter().map(|tool| {
                let tool = tool.as_object()?;
                Some(read_tool(tool.get("name")?.as_str()?, tool))
            });
            tools.collect::<Option<_>>().ok_or_else(expected)
        }
        Some(_) => Err(expected()),
    }
}

fn read_tool(name: &str, tool: &Map<String, Value>) -> ToolDefinition {
    let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
    let schema = tool.get("inputSchema").or_else(|| tool.get("parameters"));
    // What `jsonSchema()` of the SDK returns has the schema in a member.
    let schema = schema.map(|schema| schema.get("jsonSchema").unwrap_or(schema));
    let mut read = ToolDefinition::new(name, description);
    read.parameters = schema.filter(|schema| schema.is_object()).cloned();
    read
}
