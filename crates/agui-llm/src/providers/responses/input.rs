//! The input of a request: messages with their parts, reasoning, calls and their results, as items in order.

use serde_json::{Map, Value, json};

use crate::{
    Block, ModelOptions, ModelReasoning, ModelRequest, ModelStep, RequestForm,
    form::SystemForm,
    providers::{
        attachments::Attachments,
        wire::{
            EMPTY_TEXT, FIRST_USER_TEXT, OPENAI, arguments_as_text, call_id, known_image_type,
            marked_instructions, own_file, texts,
        },
    },
};
use agui_base::text::essence;
use agui_protocol::{ContentPart, MediaPart, MessageContent, PartSource, ToolCall};

/// Returns the items. `has_phases` marks the model's own messages as commentary or final answers.
pub(super) fn items(
    options: &ModelOptions,
    request: &ModelRequest,
    has_phases: bool,
    attachments: &mut Attachments,
) -> Vec<Value> {
    let mut items = Vec::new();
    let form = &request.form;
    let joins = form.system != SystemForm::Usual;
    if form.system == SystemForm::InUser {
        let later = request.steps.iter().filter_map(|step| match step {
            ModelStep::Instructions(text) => Some(text),
            _ => None,
        });
        let all = request.system.iter().chain(later).chain(&request.current);
        let all: Vec<_> = all.map(|text| text_part(&marked_instructions(text))).collect();
        items.extend((!all.is_empty()).then(|| message("user", all)));
    }
    let role = if form.system_role { "system" } else { "developer" };
    for (at, step) in request.steps.iter().enumerate() {
        attachments.enter(at);
        match step {
            ModelStep::Instructions(_) if joins => {}
            ModelStep::Instructions(instructions) => {
                items.push(message(role, vec![text_part(instructions)]))
            }
            ModelStep::User(all) => {
                let mut content = parts(all, options, attachments);
                if content.is_empty() {
                    content.push(text_part(EMPTY_TEXT));
                }
                items.push(message("user", content));
            }
            ModelStep::Assistant(blocks) => assistant(blocks, has_phases, form, &mut items),
            ModelStep::ToolResults(results) => items.extend(results.iter().map(|result| {
                json!({
                    "type": "function_call_output",
                    "call_id": call_id(&result.call_id),
                    "output": output(&result.content, options, attachments),
                })
            })),
        }
    }
    // The API refuses a request without input.
    if items.is_empty() {
        items.push(message("user", vec![text_part(FIRST_USER_TEXT)]));
    }
    // At the end, so that the provider's cache keeps the beginning of the request after a change.
    if !request.current.is_empty() && !joins {
        items.push(message(
            role,
            request.current.iter().map(|current| text_part(current)).collect(),
        ));
    }
    if form.alternates {
        items.dedup_by(|later, earlier| append(earlier, later));
    }
    items
}

/// Adds the content of a message to the message before it of the same role. Returns false if it is not of that role.
fn append(earlier: &mut Value, later: &mut Value) -> bool {
    if later["type"] != "message" || earlier["role"] != later["role"] {
        return false;
    }
    match (&mut earlier["content"], &mut later["content"]) {
        (Value::Array(parts), Value::Array(more)) => parts.append(more),
        (Value::String(text), Value::String(more)) => *text += &format!("\n\n{more}"),
        _ => return false,
    }
    true
}

fn message(role: &str, content: Vec<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

fn assistant(blocks: &[Block], has_phases: bool, form: &RequestForm, items: &mut Vec<Value>) {
    for (at, block) in blocks.iter().enumerate() {
        let rest = &blocks[at + 1..];
        match block {
            // The API refuses reasoning without the item that followed it.
            Block::Reasoning(block)
                if form.has_reasoning()
                    && rest.iter().any(|next| !matches!(next, Block::Reasoning(_))) =>
            {
                items.extend(reasoning(block));
            }
            Block::Reasoning(_) => {}
            Block::Text(text) => {
                let mut message = json!({"type": "message", "role": "assistant", "content": text});
                if has_phases {
                    // The last text of a step is the answer, unless calls follow it.
                    let is_final = rest.iter().all(|next| matches!(next, Block::Reasoning(_)));
                    message["phase"] = if is_final { "final_answer" } else { "commentary" }.into();
                }
                items.push(message);
            }
            Block::Call(made) => items.push(call(made)),
        }
    }
}

/// Returns an item of reasoning with its encrypted content. Its id alone is not enough, because the
/// service has not stored it.
fn reasoning(block: &ModelReasoning) -> Option<Value> {
    if block.provider.as_deref().is_some_and(|provider| provider != OPENAI) {
        return None;
    }
    let item: Map<String, Value> = serde_json::from_str(block.artefact.as_deref()?).ok()?;
    let (id, encrypted) = (item.get("id")?.as_str()?, item.get("encrypted_content")?.as_str()?);
    let summary = match block.text.as_str() {
        "" => json!([]),
        text => json!([{"type": "summary_text", "text": text}]),
    };
    Some(json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted}))
}

fn call(call: &ToolCall) -> Value {
    let arguments = arguments_as_text(call);
    json!({"type": "function_call", "call_id": call_id(&call.id), "name": call.function.name, "arguments": arguments})
}

fn text_part(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

/// Returns the parts of a message. A text replaces a part that the model cannot read.
fn parts(
    parts: &[ContentPart],
    options: &ModelOptions,
    attachments: &mut Attachments,
) -> Vec<Value> {
    let content = parts.iter().map(|part| {
        attachments.sent(part, |part| native(part, options)).unwrap_or_else(|note| text_part(&note))
    });
    content.filter(|part| part["text"] != "").collect()
}

/// Returns the output of a call. Text alone is a string, which older servers require.
fn output(
    content: &MessageContent,
    options: &ModelOptions,
    attachments: &mut Attachments,
) -> Value {
    let MessageContent::Parts(all) = content else { return content.text().into_owned().into() };
    let parts = parts(all, options, attachments);
    match texts(&parts) {
        Some(texts) => texts.join("\n").into(),
        None => parts.into(),
    }
}

/// Returns a part in the API's form, or the reason why it is not sent.
fn native(part: &ContentPart, options: &ModelOptions) -> Result<Value, &'static str> {
    match part {
        ContentPart::Text(part) => Ok(text_part(&part.text)),
        ContentPart::Image(media) => image(media, options),
        ContentPart::Document(media) => document(media),
        ContentPart::Audio(_) => Err("this model takes no audio"),
        ContentPart::Video(_) => Err("this model takes no videos"),
    }
}

/// Returns an image in the API's form. Types:
/// <https://developers.openai.com/api/docs/guides/images-vision>.
fn image(media: &MediaPart, options: &ModelOptions) -> Result<Value, &'static str> {
    let detail = options.image_detail.as_deref().unwrap_or("auto");
    let mut image = json!({"type": "input_image", "detail": detail});
    match &media.source {
        PartSource::Data { value, mime_type } => {
            image["image_url"] =
                format!("data:{};base64,{value}", known_image_type(mime_type)?).into();
        }
        PartSource::Url { value, .. } => image["image_url"] = value.as_str().into(),
        PartSource::File { .. } => image["file_id"] = own_file(media, OPENAI)?.into(),
    }
    Ok(image)
}

/// Returns a document in the API's form, PDFs and office files as data, all files by URL:
/// <https://developers.openai.com/api/docs/guides/file-inputs>.
fn document(media: &MediaPart) -> Result<Value, &'static str> {
    let mut file = json!({"type": "input_file"});
    match &media.source {
        PartSource::Data { value, mime_type } => {
            let mime_type = essence(mime_type);
            let extension =
                extension(&mime_type).ok_or("this model takes no documents of this type")?;
            file["filename"] = media
                .file_name()
                .map_or_else(|| format!("document.{extension}"), str::to_owned)
                .into();
            file["file_data"] = format!("data:{mime_type};base64,{value}").into();
        }
        PartSource::Url { value, .. } => file["file_url"] = value.as_str().into(),
        PartSource::File { .. } => file["file_id"] = own_file(media, OPENAI)?.into(),
    }
    Ok(file)
}

/// Returns the extension of a file's name, by which the service recognizes its type.
fn extension(mime_type: &str) -> Option<&'static str> {
    Some(match mime_type {
        "application/pdf" => "pdf",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/rtf" | "text/rtf" => "rtf",
        "application/vnd.oasis.opendocument.text" => "odt",
        "application/vnd.ms-powerpoint" => "ppt",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation" => "pptx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        _ => return None,
    })
}
