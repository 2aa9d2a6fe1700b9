//! From a web service's answer to a tool's result.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures::StreamExt as _;
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::Value;

use crate::{
    protocol::{ContentPart, MessageContent, PartSource},
    tools::ToolError,
};

/// How much of a refusal's text a model is told, in characters.
const EXCERPT: usize = 500;

/// Reads an answer, up to a limit.
pub(super) async fn read(answer: Response, pointer: Option<&str>, limit: usize) -> Result<MessageContent, ToolError> {
    let status = answer.status();
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if status.is_redirection() {
        return Err(ToolError::new(format!("{status}: the answer is a redirect, which is not followed.")));
    }
    if !status.is_success() {
        let (bytes, _) = body(answer, EXCERPT * 4).await?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let excerpt: String = text.chars().take(EXCERPT).collect();
        return Err(ToolError::new(match (excerpt.is_empty() || !is_text(&kind), text.len() > excerpt.len()) {
            (true, _) => format!("The service answered {status}."),
            (false, cut) => format!("The service answered {status}: {excerpt}{}", if cut { "…" } else { "" }),
        }));
    }
    let (bytes, cut) = body(answer, limit).await?;
    if kind.starts_with("image/") && !is_text(&kind) {
        return match cut {
            true => Err(ToolError::new(format!("The image is larger than {limit} bytes."))),
            false => {
                let source = PartSource::Data { value: BASE64_STANDARD.encode(&bytes), mime_type: kind };
                Ok(vec![ContentPart::image(source)].into())
            }
        };
    }
    let text = text(&bytes, &kind, cut)?;
    match pointer {
        _ if cut && pointer.is_some() => Err(ToolError::new(format!("The answer is longer than {limit} bytes."))),
        Some(pointer) => select(&text, pointer).map(Into::into),
        None if cut => Ok(format!("{text}\n\n[cut here: the answer is longer than {limit} bytes]").into()),
        None if text.trim().is_empty() => Ok(format!("(the service answered {status}, with nothing else)").into()),
        None => Ok(text.into()),
    }
}

/// The bytes up to a limit, and whether there would be more.
async fn body(answer: Response, limit: usize) -> Result<(Vec<u8>, bool), ToolError> {
    let mut bytes = Vec::new();
    let mut stream = answer.bytes_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk
            .map_err(|error| ToolError::new("The answer broke off before its end.").caused_by(error.without_url()))?;
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

/// Whether a media type is one of text. None at all, or plain bytes, may be text: what is in them decides.
fn is_text(kind: &str) -> bool {
    let of_application = ["json", "xml", "javascript", "x-www-form-urlencoded", "yaml", "x-yaml", "x-ndjson", "toml"];
    kind.is_empty()
        || kind == "application/octet-stream"
        || kind.starts_with("text/")
        || ["+json", "+xml", "+yaml"].iter().any(|end| kind.ends_with(end))
        || kind.strip_prefix("application/").is_some_and(|of| of_application.contains(&of))
}

fn text(bytes: &[u8], kind: &str, cut: bool) -> Result<String, ToolError> {
    let binary = || {
        let kind = if kind.is_empty() { "data of an unknown kind" } else { kind };
        ToolError::new(format!("The answer is {kind}, which cannot be read as text."))
    };
    if !is_text(kind) {
        return Err(binary());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err(binary()),
        Ok(text) => Ok(text.to_owned()),
        // The limit may have cut a character in two.
        Err(error) if cut && error.error_len().is_none() => {
            Ok(String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned())
        }
        // Old services write other encodings; most of it can be read.
        Err(_) if kind.starts_with("text/") => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Err(_) => Err(binary()),
    }
}

fn select(text: &str, pointer: &str) -> Result<String, ToolError> {
    let answer: Value =
        serde_json::from_str(text).map_err(|error| ToolError::new("The answer is not valid JSON.").caused_by(error))?;
    match answer.pointer(pointer) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value) => Ok(value.to_string()),
        None => Err(ToolError::new(format!("The answer has nothing at {pointer}."))),
    }
}
