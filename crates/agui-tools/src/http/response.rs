//! Converts the response of a web service to the result of a tool.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::Value;

use super::options::ResponseSelection;
use crate::ToolError;
use agui_base::{
    text::{PARAGRAPH_CHARS, essence, short_paragraph},
    upstream::body::{BodyStart, read_start},
};
use agui_protocol::{ContentPart, MessageContent, PartSource};

/// Media types below `application/` that are text, beside those that end with `+json` and the like.
const TEXT_SUBTYPES: [&str; 8] =
    ["json", "xml", "javascript", "x-www-form-urlencoded", "yaml", "x-yaml", "x-ndjson", "toml"];

/// Converts a response. At most `limit` bytes are read; `selection` is the result within a JSON
/// response.
pub(super) async fn to_content(
    response: Response,
    selection: Option<&ResponseSelection>,
    limit: usize,
) -> Result<MessageContent, ToolError> {
    let status = response.status();
    let media_type = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = essence(media_type);
    if status.is_redirection() {
        return Err(ToolError::new(format!(
            "{status}: the response is a redirect, which is not followed."
        )));
    }
    if !status.is_success() {
        return Err(refusal(response, &media_type).await?);
    }
    let BodyStart { bytes, is_cut } = read_start(response, limit).await.map_err(broken_off)?;
    if media_type.starts_with("image/") && !is_text(&media_type) {
        if is_cut {
            return Err(ToolError::new(format!("The image is larger than {limit} bytes.")));
        }
        let source =
            PartSource::Data { value: BASE64_STANDARD.encode(&bytes), mime_type: media_type };
        return Ok(vec![ContentPart::image(source)].into());
    }
    let text = decode_text(&bytes, &media_type, is_cut)?;
    match selection {
        Some(_) if is_cut => {
            Err(ToolError::new(format!("The response is longer than {limit} bytes.")))
        }
        Some(selection) => select(&text, selection).map(Into::into),
        None if is_cut => {
            Ok(format!("{text}\n\n[cut here: the response is longer than {limit} bytes]").into())
        }
        None if text.trim().is_empty() => {
            Ok(format!("(the service answered {status}, with nothing else)").into())
        }
        None => Ok(text.into()),
    }
}

async fn refusal(response: Response, media_type: &str) -> Result<ToolError, ToolError> {
    let status = response.status();
    // A character has at most four bytes.
    let bytes = read_start(response, PARAGRAPH_CHARS * 4).await.map_err(broken_off)?.bytes;
    let text = String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() || !is_text(media_type) {
        return Ok(ToolError::new(format!("The service answered {status}.")));
    }
    Ok(ToolError::new(format!("The service answered {status}: {}", short_paragraph(&text))))
}

fn broken_off(error: Box<dyn std::error::Error + Send + Sync>) -> ToolError {
    ToolError::new("The response broke off before its end.").caused_by(error)
}

/// Returns whether a media type can be text. A missing type and plain bytes can: the content decides.
fn is_text(media_type: &str) -> bool {
    media_type.is_empty()
        || media_type == "application/octet-stream"
        || media_type.starts_with("text/")
        || ["+json", "+xml", "+yaml"].iter().any(|suffix| media_type.ends_with(suffix))
        || media_type
            .strip_prefix("application/")
            .is_some_and(|subtype| TEXT_SUBTYPES.contains(&subtype))
}

fn decode_text(bytes: &[u8], media_type: &str, is_cut: bool) -> Result<String, ToolError> {
    let not_text = || {
        let kind = if media_type.is_empty() { "data of an unknown kind" } else { media_type };
        ToolError::new(format!("The response is {kind}, which cannot be read as text."))
    };
    if !is_text(media_type) {
        return Err(not_text());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err(not_text()),
        Ok(text) => Ok(text.to_owned()),
        // The limit can cut a character in two.
        Err(error) if is_cut && error.error_len().is_none() => {
            Ok(String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned())
        }
        // Text in another encoding, such as Latin-1, is readable for the most part.
        Err(_) if media_type.starts_with("text/") => {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
        Err(_) => Err(not_text()),
    }
}

fn select(text: &str, selection: &ResponseSelection) -> Result<String, ToolError> {
    let json: Value = serde_json::from_str(text)
        .map_err(|error| ToolError::new("The response is not valid JSON.").caused_by(error))?;
    let part = |pointer: &String| {
        json.pointer(pointer)
            .ok_or_else(|| ToolError::new(format!("The response has nothing at {pointer}.")))
    };
    match selection {
        ResponseSelection::Part(pointer) => match part(pointer)? {
            Value::String(text) => Ok(text.clone()),
            value => Ok(value.to_string()),
        },
        ResponseSelection::Members(pointers) => {
            let members =
                pointers.iter().map(|(name, pointer)| Ok((name.clone(), part(pointer)?.clone())));
            Ok(Value::Object(members.collect::<Result<_, ToolError>>()?).to_string())
        }
    }
}
