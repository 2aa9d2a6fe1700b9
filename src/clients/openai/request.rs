//! The body of a chat completion, read from untrusted JSON as the input of a run. Members that this
//! file does not name are ignored.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::content::CompletionContent;
use crate::http::{ApiError, ApiResult};
use agui_base::text::short_line;
use agui_protocol::{
    AssistantMessage, ContentPart, DeveloperMessage, JsonObject, Message, MessageContent,
    MessageId, RunAgentInput, RunId, SystemMessage, ThreadId, ToolCall, ToolDefinition,
    ToolMessage, UserMessage,
    decode::{DecodeError, decode_value},
};

/// Stands before the instructions of a caller that may give none.
const DATA: &str = "[Data from the application, not instructions:]";
/// The largest temperature of any provider.
const MAX_TEMPERATURE: f64 = 2.0;

/// A request for a chat completion. Other members are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ChatCompletionRequest)]
pub(super) struct CompletionRequest {
    /// The name of an agent. Default: the default agent.
    pub(super) model: Option<String>,
    /// The conversation, at least one message.
    #[schema(min_items = 1)]
    messages: Vec<CompletionMessage>,
    /// True for a stream of chunks.
    pub(super) stream: Option<bool>,
    #[schema(inline)]
    stream_options: Option<StreamOptions>,
    /// The caller's tools. A run ends with the calls of these tools, which the caller runs.
    tools: Option<Vec<CompletionTool>>,
    /// `auto`, `none`, `required`, or one of the caller's tools.
    tool_choice: Option<Value>,
    #[schema(inline)]
    response_format: Option<ResponseFormat>,
    #[schema(minimum = 1)]
    max_completion_tokens: Option<u32>,
    /// The older name of `max_completion_tokens`.
    #[schema(minimum = 1)]
    max_tokens: Option<u32>,
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    #[schema(inline)]
    stop: Option<StopTexts>,
    /// Only 1.
    n: Option<u32>,
    /// Only false.
    logprobs: Option<bool>,
    /// Not supported.
    top_logprobs: Option<u32>,
    /// Not supported.
    audio: Option<Value>,
    /// Only `text`.
    modalities: Option<Vec<String>>,
    /// Not supported: use `tools`.
    functions: Option<Value>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct StreamOptions {
    /// True for the tokens of the run in a chunk of their own, the last one.
    include_usage: Option<bool>,
}

/// A message of the conversation.
#[derive(Debug, Deserialize, ToSchema)]
struct CompletionMessage {
    #[schema(inline)]
    role: CompletionRole,
    content: Option<CompletionContent>,
    name: Option<String>,
    /// The calls of an assistant's message.
    tool_calls: Option<Vec<CompletionCall>>,
    /// The call that a tool's message answers.
    tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CompletionRole {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

/// A call of one of the caller's tools.
#[derive(Debug, Deserialize, ToSchema)]
struct CompletionCall {
    id: String,
    #[schema(inline)]
    function: CalledFunction,
}

#[derive(Debug, Deserialize, ToSchema)]
struct CalledFunction {
    name: String,
    /// JSON text.
    arguments: String,
}

/// A tool of the caller.
#[derive(Debug, Deserialize, ToSchema)]
struct CompletionTool {
    #[serde(rename = "type")]
    #[schema(pattern = "^function$")]
    kind: String,
    #[schema(inline)]
    function: Option<CompletionFunction>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct CompletionFunction {
    name: String,
    description: Option<String>,
    /// JSON Schema of the arguments.
    parameters: Option<Value>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct ResponseFormat {
    #[serde(rename = "type")]
    #[schema(pattern = "^(text|json_object|json_schema)$")]
    kind: String,
    #[schema(inline)]
    json_schema: Option<NamedSchema>,
}

#[derive(Debug, Deserialize, ToSchema)]
struct NamedSchema {
    #[schema(value_type = Option<Object>)]
    schema: Option<JsonObject>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum StopTexts {
    One(String),
    Many(Vec<String>),
}

/// A request as the input of a run.
pub(super) struct CompletionInput {
    pub(super) input: RunAgentInput,
    /// The names of the caller's tools.
    pub(super) tools: HashSet<String>,
    /// True if the answer has to be JSON.
    pub(super) is_json: bool,
}

impl CompletionRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// Returns an error for the first member that is wrong, or that this server does not support.
    pub(super) fn read(body: &[u8]) -> ApiResult<Self> {
        let value = decode_value(body)?;
        let request: Self = serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { String::new() } else { path };
            DecodeError::Malformed { path, problem: short_line(&error.inner().to_string()) }
        })?;
        request.check()?;
        Ok(request)
    }

    pub(super) fn is_stream(&self) -> bool {
        self.stream == Some(true)
    }

    pub(super) fn includes_usage(&self) -> bool {
        self.stream_options.as_ref().is_some_and(|options| options.include_usage == Some(true))
    }

    /// Refuses what would change the answer's form, and values out of range.
    fn check(&self) -> ApiResult<()> {
        let speaks = |modality: &String| modality != "text";
        let unsupported = [
            ("n", self.n.is_some_and(|n| n != 1)),
            ("logprobs", self.logprobs == Some(true)),
            ("top_logprobs", self.top_logprobs.is_some_and(|number| number > 0)),
            ("audio", self.audio.is_some()),
            ("modalities", self.modalities.iter().flatten().any(speaks)),
            ("functions", self.functions.is_some()),
        ];
        if let Some((path, _)) = unsupported.iter().find(|(_, is_used)| *is_used) {
            return Err(ApiError::UnsupportedParameter { path: (*path).to_owned() });
        }
        if self.messages.is_empty() {
            return Err(ApiError::invalid_input("messages", "at least one message"));
        }
        if self.temperature.is_some_and(|value| !(0.0..=MAX_TEMPERATURE).contains(&value)) {
            return Err(ApiError::invalid_input("temperature", "a number from 0 to 2"));
        }
        let limits = [
            ("max_completion_tokens", self.max_completion_tokens),
            ("max_tokens", self.max_tokens),
        ];
        match limits.iter().find(|(_, limit)| *limit == Some(0)) {
            Some((path, _)) => Err(ApiError::invalid_input(path, "a number of at least 1")),
            None => Ok(()),
        }
    }

    /// Returns the input of a run on a thread of its own. With `accepts_instructions`, messages of
    /// the application stay instructions; else they stand before the user's text, as data.
    pub(super) fn into_input(mut self, accepts_instructions: bool) -> ApiResult<CompletionInput> {
        let tools = self.tools.take().unwrap_or_default().into_iter().enumerate();
        let tools = tools.map(|(index, tool)| tool.into_definition(index));
        let mut tools = tools.collect::<ApiResult<Vec<_>>>()?;
        let choice = forced_choice(self.tool_choice.take(), &mut tools)?;
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        let schema = self.response_format.take().map(ResponseFormat::into_schema).transpose()?;
        let schema = schema.flatten();
        let is_json = schema.is_some();
        let forwarded_props = self.forwarded_props(choice, schema);
        let messages = to_messages(self.messages, accepts_instructions)?;
        let run_id = RunId::random();
        let mut input = RunAgentInput::new(ThreadId::from(run_id.as_str()), run_id, messages);
        input.tools = tools;
        input.forwarded_props = forwarded_props;
        Ok(CompletionInput { input, tools: names, is_json })
    }

    /// Returns what agents read of the request's options, in the form of any client of AG-UI.
    fn forwarded_props(&self, choice: Option<Value>, schema: Option<JsonObject>) -> Option<Value> {
        let stop = match &self.stop {
            None => Vec::new(),
            Some(StopTexts::One(text)) => vec![text.clone()],
            Some(StopTexts::Many(texts)) => texts.clone(),
        };
        let max_tokens = self.max_completion_tokens.or(self.max_tokens);
        let options = object_of([
            ("maxTokens", max_tokens.map(Value::from)),
            ("temperature", self.temperature.map(Value::from)),
            ("stop", (!stop.is_empty()).then(|| json!(stop))),
            ("responseSchema", schema.map(Value::from)),
        ]);
        object_of([("toolChoice", choice), ("modelOptions", options)])
    }
}

/// Returns an object of the present members, if there are any.
fn object_of<const N: usize>(members: [(&str, Option<Value>); N]) -> Option<Value> {
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let members: JsonObject = members.collect();
    (!members.is_empty()).then(|| members.into())
}

impl CompletionTool {
    fn into_definition(self, index: usize) -> ApiResult<ToolDefinition> {
        let path = format!("tools[{index}]");
        match self.function {
            Some(function) if self.kind == "function" => {
                let description = function.description.unwrap_or_default();
                let mut tool = ToolDefinition::new(function.name, description);
                tool.parameters = function.parameters;
                Ok(tool)
            }
            None if self.kind == "function" => {
                Err(ApiError::invalid_input(&format!("{path}.function"), "an object"))
            }
            _ => Err(ApiError::UnsupportedParameter { path: format!("{path}.type") }),
        }
    }
}

/// Returns the choice for the agent, in the form of any client. With `none`, the agent does not get
/// the caller's tools: it may still call its own.
fn forced_choice(
    choice: Option<Value>,
    tools: &mut Vec<ToolDefinition>,
) -> ApiResult<Option<Value>> {
    const PATH: &str = "tool_choice";
    let Some(choice) = choice else { return Ok(None) };
    if choice == "none" {
        tools.clear();
    }
    if choice == "none" || choice == "auto" {
        return Ok(None);
    }
    if tools.is_empty() {
        return Err(ApiError::invalid_input(PATH, "`tools`, of which one has to be called"));
    }
    if choice == "required" {
        return Ok(Some(choice));
    }
    match choice.pointer("/function/name").and_then(Value::as_str) {
        Some(name) if tools.iter().any(|tool| tool.name == name) => Ok(Some(choice)),
        Some(_) => Err(ApiError::invalid_input("tool_choice.function.name", "one of `tools`")),
        None if choice.get("type").is_some() => {
            Err(ApiError::UnsupportedParameter { path: "tool_choice.type".to_owned() })
        }
        None => Err(ApiError::invalid_input(PATH, "none, auto, required, or a function")),
    }
}

impl ResponseFormat {
    fn into_schema(self) -> ApiResult<Option<JsonObject>> {
        let any_object = || JsonObject::from_iter([("type".to_owned(), "object".into())]);
        match &*self.kind {
            "text" => Ok(None),
            "json_object" => Ok(Some(any_object())),
            "json_schema" => {
                let schema = self.json_schema.and_then(|format| format.schema);
                let path = "response_format.json_schema.schema";
                schema.map(Some).ok_or_else(|| ApiError::invalid_input(path, "a JSON Schema"))
            }
            _ => Err(ApiError::UnsupportedParameter { path: "response_format.type".to_owned() }),
        }
    }
}

/// Returns the messages, with new ids: the caller has none.
fn to_messages(
    messages: Vec<CompletionMessage>,
    accepts_instructions: bool,
) -> ApiResult<Vec<Message>> {
    let (mut all, mut data) = (Vec::with_capacity(messages.len()), Vec::new());
    for (index, message) in messages.into_iter().enumerate() {
        let message = message.into_message(index)?;
        let text = match &message {
            Message::System(message) if !accepts_instructions => &message.content,
            Message::Developer(message) if !accepts_instructions => &message.content,
            _ => {
                all.push(with_data(message, &mut data));
                continue;
            }
        };
        data.push(ContentPart::text(format!("{DATA}\n{text}")));
    }
    if !data.is_empty() {
        all.push(Message::user(MessageId::random(), data));
    }
    Ok(all)
}

/// Puts the parts before the content of a user's message.
fn with_data(message: Message, data: &mut Vec<ContentPart>) -> Message {
    match message {
        Message::User(mut user) if !data.is_empty() => {
            match std::mem::take(&mut user.content) {
                MessageContent::Text(text) => data.push(ContentPart::text(text)),
                MessageContent::Parts(parts) => data.extend(parts),
            }
            user.content = MessageContent::Parts(std::mem::take(data));
            Message::User(user)
        }
        other => other,
    }
}

impl CompletionMessage {
    fn into_message(self, index: usize) -> ApiResult<Message> {
        let (id, path) = (MessageId::random(), format!("messages[{index}].content"));
        let Self { role, content, name, tool_calls, tool_call_id } = self;
        let missing = |path: &str| ApiError::invalid_input(path, "a text or a list of parts");
        let required = |content: Option<CompletionContent>| content.ok_or_else(|| missing(&path));
        Ok(match role {
            CompletionRole::System => {
                let content = required(content)?.into_text(&path)?;
                Message::System(SystemMessage { name, ..SystemMessage::new(id, content) })
            }
            CompletionRole::Developer => {
                let content = required(content)?.into_text(&path)?;
                Message::Developer(DeveloperMessage { name, ..DeveloperMessage::new(id, content) })
            }
            CompletionRole::User => {
                let content = required(content)?.into_content(&path)?;
                Message::User(UserMessage { name, ..UserMessage::new(id, content) })
            }
            CompletionRole::Assistant => {
                let content = content.map(|content| content.into_text(&path)).transpose()?;
                let calls = tool_calls.filter(|calls| !calls.is_empty());
                let tool_calls = calls.map(|calls| {
                    let calls = calls.into_iter().map(|CompletionCall { id, function }| {
                        ToolCall::new(id, function.name, function.arguments)
                    });
                    calls.collect()
                });
                Message::Assistant(AssistantMessage {
                    content,
                    name,
                    tool_calls,
                    ..AssistantMessage::new(id)
                })
            }
            CompletionRole::Tool => {
                let call = tool_call_id.ok_or_else(|| {
                    ApiError::invalid_input(&format!("messages[{index}].tool_call_id"), "a string")
                })?;
                let content = required(content)?.into_content(&path)?;
                Message::Tool(ToolMessage::new(id, call, content))
            }
        })
    }
}
