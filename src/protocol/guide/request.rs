//! What a client sends: messages that are new, the thread they belong to, and whether to think hard.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{blocks::ContentBlock, hitl::HitlDecision};
use crate::protocol::{
    AssistantMessage, ContentPart, Message, MessageContent, MessageId, RunAgentInput, RunId, SystemMessage, ThreadId,
};

/// What is wrong with a request, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: expected {expected}")]
pub struct Fault {
    /// The JSON path of what is wrong, such as `messages[0].content[1].mime_type`.
    pub path: String,
    /// What should have been there.
    pub expected: String,
}

impl Fault {
    /// Something else was expected at a path.
    pub fn new(path: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { path: path.into(), expected: expected.into() }
    }
}

/// Who a message is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    /// The person.
    User,
    /// The agent.
    Assistant,
    /// Instructions.
    System,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageBody {
    /// A text.
    Text(String),
    /// Blocks, in order.
    Blocks(Vec<ContentBlock>),
    /// What somebody decided about actions that an agent asked for.
    Decisions(Vec<HitlDecision>),
}

/// A message of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage {
    /// Identifies the message, if the client says how.
    pub id: Option<String>,
    /// Who it is from.
    pub role: MessageRole,
    /// What it says.
    pub content: MessageBody,
}

/// A message on the chat endpoint, which is the same on both.
pub type ChatMessage = AgentMessage;

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The messages that are new.
    pub messages: Vec<AgentMessage>,
    /// The conversation; a new one if there is none.
    pub thread_id: Option<String>,
    /// Whether the model is to think before it answers; as it is set, if left out.
    pub enable_deep_thinking: Option<bool>,
}

impl MessageBody {
    /// The text, if it says nothing but text.
    pub fn as_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Blocks(blocks) => blocks
                .iter()
                .map(|block| if let ContentBlock::Text(text) = block { Some(text.text.as_str()) } else { None })
                .collect(),
            Self::Decisions(_) => None,
        }
    }

    fn read(content: &Value, path: &str) -> Result<Self, Fault> {
        match content {
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Array(blocks) => {
                let read = |(at, block): (usize, &Value)| ContentBlock::read(block, &format!("{path}[{at}]"));
                blocks.iter().enumerate().map(read).collect::<Result<_, _>>().map(Self::Blocks)
            }
            Value::Object(object) => {
                let path = format!("{path}.decisions");
                let decisions = object.get("decisions").and_then(Value::as_array);
                let decisions = decisions.ok_or_else(|| Fault::new(&path, "a list of decisions"))?;
                let read = |(at, decision): (usize, &Value)| HitlDecision::read(decision, &format!("{path}[{at}]"));
                decisions.iter().enumerate().map(read).collect::<Result<_, _>>().map(Self::Decisions)
            }
            _ => Err(Fault::new(path, "a text, a list of blocks, or an object with `decisions`")),
        }
    }
}

impl AgentMessage {
    /// A message.
    pub fn new(role: MessageRole, content: MessageBody) -> Self {
        Self { id: None, role, content }
    }

    /// A person's text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(MessageRole::User, MessageBody::Text(text.into()))
    }

    /// The message in LangChain's form: `{role, content}`, the content a text or a list of blocks.
    pub fn to_langchain_format(&self) -> Value {
        let content = match &self.content {
            MessageBody::Text(text) => json!(text),
            MessageBody::Blocks(blocks) => blocks.iter().map(ContentBlock::to_langchain_format).collect(),
            MessageBody::Decisions(decisions) => json!({ "decisions": decisions }),
        };
        json!({ "role": self.role, "content": content })
    }

    fn read(message: &Value, path: &str) -> Result<Self, Fault> {
        let message = message.as_object().ok_or_else(|| Fault::new(path, "an object"))?;
        let role = match message.get("role").and_then(Value::as_str) {
            Some("user" | "human") => MessageRole::User,
            Some("assistant" | "ai") => MessageRole::Assistant,
            Some("system") => MessageRole::System,
            _ => return Err(Fault::new(format!("{path}.role"), "one of user, assistant, system")),
        };
        let content = message.get("content").unwrap_or(&Value::Null);
        let id = text(message, "id", path)?.filter(|id| !id.is_empty());
        Ok(Self { id, role, content: MessageBody::read(content, &format!("{path}.content"))? })
    }

    fn to_message(&self, path: &str) -> Result<Message, Fault> {
        // Without an id, the run finds out which stored message it is, or gives it one.
        let id = MessageId::from(self.id.as_deref().unwrap_or_default());
        let content_path = format!("{path}.content");
        let content = match &self.content {
            MessageBody::Text(text) => MessageContent::Text(text.clone()),
            MessageBody::Blocks(blocks) => {
                let part = |(at, block): (usize, &ContentBlock)| block.to_part(&format!("{content_path}[{at}]"));
                let parts: Vec<Option<ContentPart>> = blocks.iter().enumerate().map(part).collect::<Result<_, _>>()?;
                MessageContent::Parts(parts.into_iter().flatten().collect())
            }
            MessageBody::Decisions(_) => return Err(Fault::new(content_path, "no decisions: nothing asked for them")),
        };
        let plain = || match &content {
            MessageContent::Text(_) => Ok(content.text().into_owned()),
            MessageContent::Parts(parts) if parts.iter().all(|part| matches!(part, ContentPart::Text(_))) => {
                Ok(content.text().into_owned())
            }
            MessageContent::Parts(_) => Err(Fault::new(format!("{path}.content"), "text; only a user sends the rest")),
        };
        Ok(match self.role {
            MessageRole::User => Message::user(id, content),
            MessageRole::Assistant => {
                Message::Assistant(AssistantMessage { content: Some(plain()?), ..AssistantMessage::new(id) })
            }
            MessageRole::System => Message::System(SystemMessage {
                id,
                content: plain()?,
                name: None,
                encrypted_value: None,
                metadata: None,
                subagent_run_id: None,
            }),
        })
    }
}

impl ChatRequest {
    /// Reads a request. Members that the guide does not describe are left out.
    ///
    /// # Errors
    /// A [`Fault`], for the first thing that is wrong.
    pub fn read(request: &Value) -> Result<Self, Fault> {
        let request = request.as_object().ok_or_else(|| Fault::new("", "an object"))?;
        let messages = request.get("messages").and_then(Value::as_array);
        let messages = messages.filter(|messages| !messages.is_empty());
        let messages = messages.ok_or_else(|| Fault::new("messages", "a list of at least one message"))?;
        let read = |(at, message): (usize, &Value)| AgentMessage::read(message, &format!("messages[{at}]"));
        let enable_deep_thinking = match request.get("enable_deep_thinking") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(yes)) => Some(*yes),
            Some(_) => return Err(Fault::new("enable_deep_thinking", "true or false")),
        };
        Ok(Self {
            messages: messages.iter().enumerate().map(read).collect::<Result<_, _>>()?,
            thread_id: text(request, "thread_id", "")?.filter(|id| !id.is_empty()),
            enable_deep_thinking,
        })
    }

    /// The person's newest message, which answers what is open.
    pub fn newest(&self) -> Option<&AgentMessage> {
        self.messages.last().filter(|message| message.role == MessageRole::User)
    }

    /// A run on a thread with these messages; without the last one, if that was an answer.
    ///
    /// # Errors
    /// A [`Fault`], when a message cannot be one of AG-UI.
    pub fn to_input(&self, thread_id: ThreadId, answered: bool) -> Result<RunAgentInput, Fault> {
        let new = &self.messages[..self.messages.len() - usize::from(answered && !self.messages.is_empty())];
        let message = |(at, message): (usize, &AgentMessage)| message.to_message(&format!("messages[{at}]"));
        let messages = new.iter().enumerate().map(message).collect::<Result<Vec<_>, _>>()?;
        let mut input = RunAgentInput::new(thread_id, RunId::random(), messages);
        input.forwarded_props = self.enable_deep_thinking.map(|yes| json!({ "enableDeepThinking": yes }));
        Ok(input)
    }
}

fn text(object: &Map<String, Value>, name: &str, path: &str) -> Result<Option<String>, Fault> {
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            Err(Fault::new(path, "a text"))
        }
    }
}
