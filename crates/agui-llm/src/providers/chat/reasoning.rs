//! Reasoning in the members and in the lists in which servers write it.

use serde_json::{Map, Value};

use super::tags::{AnswerPiece, PieceKind};
use crate::{
    Artefact,
    transport::{AnswerEvents, DecodeFault, json::list},
};

const DETAILS: &str = "reasoning_details";
/// The members of a part that may have its reasoning.
const REASONING: &[&str] =
    &["thinking", "reasoning", "reasoning_content", "text", "content", "summary"];

/// Returns the reasoning in a delta's members. Some servers write the same text to several members.
pub(super) fn member_text(delta: &Value) -> String {
    let members =
        ["reasoning_content", "reasoning", "thinking"].iter().map(|member| text(delta.get(member)));
    let mut texts = members.chain([details_text(delta)]);
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

/// Returns the parts of a list of content, in order.
pub(super) fn parts(list: &[Value]) -> Vec<AnswerPiece> {
    let pieces = list.iter().map(|part| {
        // Mistral's form is `thinking`, LangChain's and vLLM's `reasoning`.
        let (kind, members) = match part.get("type").and_then(Value::as_str) {
            Some("thinking" | "reasoning" | "reasoning_content" | "reasoning_text") => {
                (PieceKind::Reasoning, REASONING)
            }
            _ if part.is_string() => return (PieceKind::Text, text(Some(part))),
            _ => (PieceKind::Text, &["text", "refusal"][..]),
        };
        let mut texts = members.iter().map(|name| text(part.get(name)));
        (kind, texts.find(|text| !text.is_empty()).unwrap_or_default())
    });
    pieces.collect()
}

/// Returns a text, or the texts of a list.
pub(super) fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()))
            .collect(),
        Some(Value::Object(object)) => {
            object.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        _ => String::new(),
    }
}

fn details_text(delta: &Value) -> String {
    let texts = list(delta, DETAILS)
        .iter()
        .filter_map(|detail| detail.get("text").or(detail.get("summary"))?.as_str());
    texts.collect()
}

/// The `reasoning_details` of a block of reasoning, which are sent back unchanged. A stream has the
/// pieces of a detail with the same type and index:
/// <https://openrouter.ai/docs/use-cases/reasoning-tokens>.
#[derive(Debug, Default)]
pub(super) struct ReasoningDetails {
    details: Vec<Map<String, Value>>,
}

impl ReasoningDetails {
    pub(super) fn add(
        &mut self,
        delta: &Value,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        for detail in list(delta, DETAILS).iter().filter_map(Value::as_object) {
            let size =
                |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
            output.hold(detail.iter().map(|(name, value)| name.len() + size(value)).sum())?;
            match self.details.last_mut() {
                Some(last) if continues(last, detail) => extend(last, detail),
                _ => self.details.push(detail.clone()),
            }
        }
        Ok(())
    }

    /// Returns the details as JSON.
    pub(super) fn take_artefact(&mut self) -> Option<Artefact> {
        let details = std::mem::take(&mut self.details);
        let is_some = !details.is_empty();
        is_some.then(|| {
            Artefact::new("openai.reasoning_details", Value::from_iter(details).to_string())
        })
    }
}

/// Returns whether a detail continues the last one. Encrypted details come whole.
fn continues(last: &Map<String, Value>, detail: &Map<String, Value>) -> bool {
    let is_text = ["reasoning.text", "reasoning.summary"]
        .iter()
        .any(|kind| detail.get("type").is_some_and(|of| of == kind));
    is_text && last.get("type") == detail.get("type") && last.get("index") == detail.get("index")
}

fn extend(last: &mut Map<String, Value>, detail: &Map<String, Value>) {
    for (name, value) in detail {
        match (last.get_mut(name), value) {
            (Some(Value::String(text)), Value::String(more))
                if matches!(name.as_str(), "text" | "summary") =>
            {
                text.push_str(more);
            }
            (Some(_), Value::Null) => {}
            (_, value) => drop(last.insert(name.clone(), value.clone())),
        }
    }
}
