//! The request body, read from untrusted JSON. Members that the guide does not describe are ignored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{InvalidRequest, content_block::ContentBlock, decision::HitlDecision};
use agui_protocol::{
    AssistantMessage, ContentPart, Message, MessageContent, MessageId, RunAgentInput, RunId,
    SystemMessage, ThreadId, host::DEEP_THINKING,
};

/// The request body of both endpoints.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[schema(as = NamedEventRequest)]
pub struct ChatRequest {
    /// The new messages; at least one.
    #[schema(min_items = 1)]
    pub messages: Vec<AgentMessage>,
    /// The thread; without one, or with `null`, a new thread begins.
    pub thread_id: Option<String>,
    /// Makes the model reason before it answers; absent, or `null`, leaves it to the agent's options.
    pub enable_deep_thinking: Option<bool>,
}

/// A message of a request.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[schema(as = NamedEventMessage)]
pub struct AgentMessage {
    /// The message's id. Without one, or with `null`, the server finds the stored message that it repeats, or generates an id.
    pub id: Option<String>,
    /// The author's role.
    #[schema(value_type = String, pattern = "^(user|human|assistant|ai|system)$")]
    pub role: MessageRole,
    /// The content.
    pub content: MessageBody,
}

/// A message on the chat endpoint, which is the same on both.
pub type ChatMessage = AgentMessage;

/// The role of a message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    /// A person.
    User,
    /// An agent.
    Assistant,
    /// Instructions of the application.
    System,
}

/// A text, blocks, or a person's decisions about the open interrupts.
#[derive(Debug, Clone, PartialEq, ToSchema)]
#[serde(untagged)]
#[schema(as = NamedEventContent)]
pub enum MessageBody {
    /// A text.
    Text(String),
    /// Blocks, in order.
    Blocks(Vec<ContentBlock>),
    /// A person's decisions about actions.
    #[schema(value_type = DecisionList<'_>)]
    Decisions(Vec<HitlDecision>),
}

#[derive(Serialize, ToSchema)]
struct DecisionList<'a> {
    decisions: &'a [HitlDecision],
}

impl ChatRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// Returns an error for the first invalid value.
    pub fn read(request: &Value) -> Result<Self, InvalidRequest> {
        let request = request.as_object().ok_or_else(|| InvalidRequest::new("", "an object"))?;
        let messages = request.get("messages").and_then(Value::as_array);
        let messages = messages.filter(|messages| !messages.is_empty());
        let messages = messages
            .ok_or_else(|| InvalidRequest::new("messages", "a list of at least one message"))?;
        let enable_deep_thinking = match request.get("enable_deep_thinking") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(enable)) => Some(*enable),
            Some(_) => return Err(InvalidRequest::new("enable_deep_thinking", "true or false")),
        };
        Ok(Self {
            messages: read_items(messages, "messages", AgentMessage::read)?,
            thread_id: optional_text(request, "thread_id", "")?.filter(|id| !id.is_empty()),
            enable_deep_thinking,
        })
    }

    /// Returns the last message if a person wrote it. It replies to the open interrupts, if there are any.
    pub fn newest_user_message(&self) -> Option<&AgentMessage> {
        self.messages.last().filter(|message| message.role == MessageRole::User)
    }

    /// Returns the input of a run. With `is_reply`, the last message is left out: it becomes the input's `resume`. So are the
    /// replies of earlier requests, from a client that sends its whole list: decisions, and texts without ids between the
    /// last text of an agent and this reply. If the question came without a text, so is the message before it, which is
    /// stored.
    ///
    /// # Errors
    /// Returns an error if AG-UI has no form for a message.
    pub fn to_input(
        &self,
        thread_id: ThreadId,
        is_reply: bool,
    ) -> Result<RunAgentInput, InvalidRequest> {
        let new = &self.messages
            [..self.messages.len() - usize::from(is_reply && !self.messages.is_empty())];
        let to_message = |(index, message): (usize, &AgentMessage)| {
            message.to_message(&format!("messages[{index}].content"))
        };
        let last = self.messages.len().saturating_sub(1);
        let question = new.iter().rposition(|message| message.role == MessageRole::Assistant);
        let is_earlier_reply = |(index, message): &(usize, &AgentMessage)| {
            let is_decisions =
                matches!(message.content, MessageBody::Decisions(_)) && *index < last;
            let is_unclear = is_reply
                && message.id.is_none()
                && question.is_none_or(|question| *index > question);
            message.role == MessageRole::User && (is_decisions || is_unclear)
        };
        let new = new.iter().enumerate().filter(|message| !is_earlier_reply(message));
        let messages = new.map(to_message).collect::<Result<Vec<_>, _>>()?;
        let mut input = RunAgentInput::new(thread_id, RunId::random(), messages);
        input.forwarded_props =
            self.enable_deep_thinking.map(|enable| json!({ DEEP_THINKING: enable }));
        Ok(input)
    }
}

impl AgentMessage {
    /// A message without an id.
    pub fn new(role: MessageRole, content: MessageBody) -> Self {
        Self { id: None, role, content }
    }

    /// A person's text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, MessageBody::Text(text.into()))
    }

    /// Returns the message in LangChain's form: `{role, content}`, where the content is a text or a list of blocks.
    pub fn to_langchain_format(&self) -> Value {
        let content = match &self.content {
            MessageBody::Text(text) => json!(text),
            MessageBody::Blocks(blocks) => {
                blocks.iter().map(ContentBlock::to_langchain_format).collect()
            }
            MessageBody::Decisions(decisions) => json!(DecisionList { decisions }),
        };
        json!({ "role": self.role, "content": content })
    }

    fn read(message: &Value, path: &str) -> Result<Self, InvalidRequest> {
        let message = message.as_object().ok_or_else(|| InvalidRequest::new(path, "an object"))?;
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user" | "human") => MessageRole::User,
            Some("assistant" | "ai") => MessageRole::Assistant,
            Some("system") => MessageRole::System,
            _ => {
                return Err(InvalidRequest::new(
                    format!("{path}.role"),
                    "one of user, assistant, system",
                ));
            }
        };
        let content = message.get("content").unwrap_or(&Value::Null);
        let id = optional_text(message, "id", path)?.filter(|id| !id.is_empty());
        Ok(Self { id, role, content: MessageBody::read(content, &format!("{path}.content"))? })
    }

    /// The id is empty if the client sent none. `path` is the path of the content.
    fn to_message(&self, path: &str) -> Result<Message, InvalidRequest> {
        let id = MessageId::from(self.id.as_deref().unwrap_or_default());
        let content = self.content.to_content(path)?;
        let only_text = |content: MessageContent| match &content {
            MessageContent::Parts(parts)
                if !parts.iter().all(|part| matches!(part, ContentPart::Text(_))) =>
            {
                Err(InvalidRequest::new(
                    path,
                    "text; other blocks are for messages of the role user",
                ))
            }
            _ => Ok(content.text().into_owned()),
        };
        Ok(match self.role {
            MessageRole::User => Message::user(id, content),
            MessageRole::Assistant => {
                let content = Some(only_text(content)?);
                Message::Assistant(AssistantMessage { content, ..AssistantMessage::new(id) })
            }
            MessageRole::System => Message::System(SystemMessage::new(id, only_text(content)?)),
        })
    }
}

impl MessageBody {
    /// Returns the text, if the content is only text.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Blocks(blocks) => blocks
                .iter()
                .map(|block| {
                    if let ContentBlock::Text(text) = block {
                        Some(text.text.as_str())
                    } else {
                        None
                    }
                })
                .collect(),
            Self::Decisions(_) => None,
        }
    }

    fn read(content: &Value, path: &str) -> Result<Self, InvalidRequest> {
        match content {
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Array(blocks) => read_items(blocks, path, ContentBlock::read).map(Self::Blocks),
            Value::Object(object) => {
                let path = format!("{path}.decisions");
                let decisions = object.get("decisions").and_then(Value::as_array);
                let decisions =
                    decisions.ok_or_else(|| InvalidRequest::new(&path, "a list of decisions"))?;
                read_items(decisions, &path, HitlDecision::read).map(Self::Decisions)
            }
            _ => Err(InvalidRequest::new(
                path,
                "a text, a list of blocks, or an object with `decisions`",
            )),
        }
    }

    fn to_content(&self, path: &str) -> Result<MessageContent, InvalidRequest> {
        match self {
            Self::Text(text) => Ok(MessageContent::Text(text.clone())),
            Self::Blocks(blocks) => {
                let parts = read_items(blocks, path, ContentBlock::to_part)?;
                Ok(MessageContent::Parts(parts.into_iter().flatten().collect()))
            }
            Self::Decisions(_) => Err(InvalidRequest::new(
                path,
                "a text or blocks; decisions are for the newest message of a user",
            )),
        }
    }
}

/// Reads each item of a list at its own path, such as `messages[3]`.
fn read_items<T, R>(
    items: &[T],
    path: &str,
    read: impl Fn(&T, &str) -> Result<R, InvalidRequest>,
) -> Result<Vec<R>, InvalidRequest> {
    items.iter().enumerate().map(|(index, item)| read(item, &format!("{path}[{index}]"))).collect()
}

fn optional_text(
    object: &Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<String>, InvalidRequest> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            Err(InvalidRequest::new(path, "a string"))
        }
    }
}
