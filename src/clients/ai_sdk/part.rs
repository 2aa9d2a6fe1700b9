//! The forms that streams and stored messages share.

use serde_json::{Value, json};

use agui_protocol::{
    FunctionCall, Interrupt, JsonObject, MessageContent, ToolCallId,
    approval::asks_for_approval,
    file_activity::{FILE_TYPE, FILE_URL},
    own_names::{CITATIONS, CONTEXT_SUMMARY, FAILED, PLACEHOLDER},
};

/// The key of this server in the provider metadata of a part.
pub(super) const OWN_METADATA: &str = "agui";
/// The id of the stored message that a part belongs to.
pub(super) const MESSAGE_ID: &str = "messageId";
/// The id of the interrupt for which a part of a tool stands that no agent has called.
pub(super) const INTERRUPT_ID: &str = "interruptId";
/// The interrupt that the page answers with the output of a tool, in the tool metadata of the part.
pub(super) const INTERRUPT: &str = "interrupt";

/// Returns the provider metadata of a part of a stored message.
pub(super) fn own_metadata(message: &str) -> Value {
    json!({ OWN_METADATA: { MESSAGE_ID: message } })
}

/// Returns the input of a call; `Err` has the text of arguments that are not JSON.
pub(super) fn input(arguments: &str) -> Result<Value, &str> {
    match arguments.trim() {
        "" => Ok(json!({})),
        text => serde_json::from_str(text).map_err(|_| arguments),
    }
}

/// Returns the output of a tool: the value of a text that is JSON, the text, or the parts.
pub(super) fn output(content: &MessageContent) -> Value {
    match content {
        MessageContent::Text(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into())
        }
        MessageContent::Parts(parts) => json!(parts),
    }
}

pub(super) fn has_failed(metadata: Option<&JsonObject>) -> bool {
    metadata.and_then(|metadata| metadata.get(FAILED)).is_some_and(|failed| *failed == true)
}

/// Returns whether an activity is only for other readers.
pub(super) fn is_hidden_activity(activity_type: &str) -> bool {
    [CONTEXT_SUMMARY, PLACEHOLDER].contains(&activity_type)
}

/// Returns the parts for the sources of a text, each URL once. Providers name them in different
/// forms: a URL and a title, alone or in a member.
pub(super) fn sources(message: &str, metadata: Option<&JsonObject>) -> Vec<Value> {
    let citations = metadata.and_then(|metadata| metadata.get(CITATIONS)?.as_array());
    let mut urls: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for citation in citations.into_iter().flatten() {
        let inner = ["url_citation", "web"].iter().find_map(|name| citation.get(name));
        let source = inner.unwrap_or(citation);
        let url = source.get("url").or_else(|| source.get("uri")).and_then(Value::as_str);
        let Some(url) = url.filter(|url| !urls.contains(url)) else { continue };
        let mut part = json!({
            "type": "source-url", "sourceId": format!("{message}-{}", urls.len()), "url": url,
            "providerMetadata": own_metadata(message),
        });
        if let Some(title) = source.get("title").and_then(Value::as_str) {
            part["title"] = title.into();
        }
        urls.push(url);
        parts.push(part);
    }
    parts
}

/// An interrupt as a part of a tool.
pub(super) struct Ask<'a> {
    pub(super) interrupt: &'a Interrupt,
    /// The call, or the interrupt's id if it is about none.
    pub(super) call: ToolCallId,
    pub(super) name: String,
    pub(super) input: Value,
    /// False for a question that the page answers with the output of the tool.
    pub(super) is_approval: bool,
}

impl<'a> Ask<'a> {
    /// `call` is the call that the interrupt is about.
    pub(super) fn new(interrupt: &'a Interrupt, call: Option<&FunctionCall>) -> Self {
        let named = || interrupt.metadata.as_ref()?.get("toolName")?.as_str();
        let name = call.map(|call| call.name.as_str()).or_else(named);
        let arguments = interrupt.arguments().cloned().map(Value::Object);
        let of_call = || call.map(|call| input(&call.arguments).unwrap_or_else(Value::from));
        let message = || json!({ "message": interrupt.message });
        Self {
            interrupt,
            call: interrupt.tool_call_id.clone().unwrap_or_else(|| interrupt.id.as_str().into()),
            name: name.unwrap_or(&interrupt.reason).to_owned(),
            input: arguments.or_else(of_call).unwrap_or_else(message),
            is_approval: is_approval(interrupt),
        }
    }

    /// Returns the provider metadata of the part; `None` for that of a call.
    pub(super) fn metadata(&self) -> Option<Value> {
        let id = &self.interrupt.id;
        self.interrupt.tool_call_id.is_none().then(|| json!({ OWN_METADATA: { INTERRUPT_ID: id } }))
    }
}

/// Returns whether a yes or a no answers an interrupt.
pub(super) fn is_approval(interrupt: &Interrupt) -> bool {
    interrupt.response_schema.as_ref().is_none_or(asks_for_approval)
}

/// Returns the part for a file that an agent hands over.
pub(super) fn file(content: &JsonObject) -> Option<Value> {
    let text = |name: &str| content.get(name).and_then(Value::as_str);
    let media_type = text(FILE_TYPE).unwrap_or("application/octet-stream");
    Some(json!({ "type": "file", "url": text(FILE_URL)?, "mediaType": media_type }))
}
