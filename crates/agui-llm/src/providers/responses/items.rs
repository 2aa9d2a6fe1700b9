//! The items of an answer while they are sent.

use std::collections::{BTreeMap, btree_map::Entry};

use serde_json::{Value, json};

use crate::{
    Artefact, BlockStart,
    transport::{
        AnswerEvents, DecodeFault, call_start,
        json::{list, number, text},
    },
};

/// An item of an answer that is not complete.
pub(super) enum OpenItem {
    /// A message, with its parts by their index.
    Message(BTreeMap<u64, OpenTextPart>),
    Reasoning(OpenReasoning),
    Call {
        block: usize,
        has_arguments: bool,
    },
    /// A call of the provider's own tool, or an item of a newer type.
    Hidden,
}

pub(super) struct OpenTextPart {
    block: usize,
    citations: usize,
}

#[derive(Default)]
pub(super) struct OpenReasoning {
    /// The block; absent before the first text, because much reasoning has no text.
    block: Option<usize>,
    /// The part of the last text.
    part: Option<u64>,
}

/// The end of reasoning that can be sent back.
pub(super) struct ReasoningEnd {
    block: Option<usize>,
    pub(super) artefact: String,
}

impl OpenItem {
    pub(super) fn open(item: &Value, output: &mut AnswerEvents) -> Result<Self, DecodeFault> {
        Ok(match text(item, "type") {
            "message" => Self::Message(BTreeMap::new()),
            "reasoning" => Self::Reasoning(OpenReasoning::default()),
            "function_call" => {
                let start = call_start(text(item, "call_id"), text(item, "name"))?;
                Self::Call { block: output.start(start)?, has_arguments: false }
            }
            _ => Self::Hidden,
        })
    }

    /// Returns whether the item has the type of an item in an event.
    pub(super) fn is_of(&self, kind: &str) -> bool {
        match self {
            Self::Message(_) => kind == "message",
            Self::Reasoning(_) => kind == "reasoning",
            Self::Call { .. } => kind == "function_call",
            Self::Hidden => !matches!(kind, "message" | "reasoning" | "function_call"),
        }
    }

    /// Adds an event between the beginning and the end of the item. The parts of reasoning are paragraphs.
    pub(super) fn update(
        &mut self,
        kind: &str,
        event: &Value,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        let delta = text(event, "delta");
        match (self, kind) {
            (Self::Message(parts), "response.output_text.delta" | "response.refusal.delta")
                if !delta.is_empty() =>
            {
                let block = part(parts, number(event, "content_index"), output)?.block;
                output.delta(block, delta);
            }
            (Self::Message(parts), "response.output_text.annotation.added") => {
                let part = part(parts, number(event, "content_index"), output)?;
                part.cite(event.get("annotation").unwrap_or(&Value::Null), output);
            }
            (Self::Reasoning(reasoning), "response.reasoning_summary_text.delta") => {
                reasoning.add(number(event, "summary_index"), delta, output)?;
            }
            // Open models send the reasoning and not a summary.
            (Self::Reasoning(reasoning), "response.reasoning_text.delta") => {
                reasoning.add(number(event, "content_index"), delta, output)?;
            }
            (Self::Call { block, has_arguments }, "response.function_call_arguments.delta") => {
                *has_arguments |= !delta.is_empty();
                output.delta(*block, delta);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds content that came only with the complete item. Returns whether the model refused.
    pub(super) fn complete(
        &mut self,
        item: &Value,
        output: &mut AnswerEvents,
    ) -> Result<bool, DecodeFault> {
        let mut refused = false;
        match self {
            Self::Message(parts) => {
                for (index, content) in (0..).zip(list(item, "content")) {
                    let is_refusal = text(content, "type") == "refusal";
                    let whole = text(content, if is_refusal { "refusal" } else { "text" });
                    refused |= is_refusal;
                    if whole.is_empty() {
                        continue;
                    }
                    let is_new = !parts.contains_key(&index);
                    let part = part(parts, index, output)?;
                    if is_new {
                        output.delta(part.block, whole);
                    }
                    for annotation in list(content, "annotations").iter().skip(part.citations) {
                        part.cite(annotation, output);
                    }
                }
            }
            Self::Reasoning(reasoning) if reasoning.block.is_none() => {
                for (index, part) in
                    (0..).zip(list(item, "summary").iter().chain(list(item, "content")))
                {
                    reasoning.add(index, text(part, "text"), output)?;
                }
            }
            Self::Call { block, has_arguments } if !*has_arguments => {
                let arguments = text(item, "arguments");
                *has_arguments = !arguments.is_empty();
                output.delta(*block, arguments);
            }
            Self::Hidden if text(item, "type") == "image_generation_call" => {
                let format = Some(text(item, "output_format")).filter(|format| !format.is_empty());
                output.media(&format!("image/{}", format.unwrap_or("png")), text(item, "result"));
            }
            Self::Reasoning(_) | Self::Call { .. } | Self::Hidden => {}
        }
        Ok(refused)
    }

    /// Ends the item. The end of reasoning that can be sent back is returned, because it depends on
    /// the next item.
    pub(super) fn end(self, item: &Value, output: &mut AnswerEvents) -> Option<ReasoningEnd> {
        match self {
            Self::Message(parts) => {
                parts.into_values().for_each(|part| output.end(part.block, None))
            }
            Self::Reasoning(OpenReasoning { block, .. }) => {
                let (id, encrypted) = (text(item, "id"), text(item, "encrypted_content"));
                if !id.is_empty() && !encrypted.is_empty() {
                    let artefact = json!({"id": id, "encrypted_content": encrypted}).to_string();
                    return Some(ReasoningEnd { block, artefact });
                }
                block.into_iter().for_each(|block| output.end(block, None));
            }
            Self::Call { block, has_arguments } => {
                if !has_arguments {
                    // The agent expects JSON.
                    output.delta(block, "{}");
                }
                output.end(block, None);
            }
            Self::Hidden => {}
        }
        None
    }
}

impl OpenTextPart {
    fn cite(&mut self, annotation: &Value, output: &mut AnswerEvents) {
        self.citations += 1;
        if annotation.is_object() {
            output.citation(self.block, annotation.clone());
        }
    }
}

impl OpenReasoning {
    fn add(
        &mut self,
        index: u64,
        text: &str,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.block {
            Some(block) => block,
            None => *self.block.insert(output.start(BlockStart::Reasoning { redacted: false })?),
        };
        if self.part.replace(index).is_some_and(|before| before != index) {
            output.delta(block, "\n\n");
        }
        output.delta(block, text);
        Ok(())
    }
}

impl ReasoningEnd {
    /// `is_followed_by_hidden` is true if the item after it will not be sent back.
    pub(super) fn end(
        self,
        is_followed_by_hidden: bool,
        output: &mut AnswerEvents,
    ) -> Result<(), DecodeFault> {
        let block = match self.block {
            Some(block) => block,
            None if is_followed_by_hidden => return Ok(()),
            None => output.start(BlockStart::Reasoning { redacted: false })?,
        };
        let artefact = (!is_followed_by_hidden)
            .then(|| Artefact::new("openai.encrypted_content", self.artefact));
        output.end(block, artefact);
        Ok(())
    }
}

/// Returns a part of a message, and starts it if it is new.
fn part<'p>(
    parts: &'p mut BTreeMap<u64, OpenTextPart>,
    index: u64,
    output: &mut AnswerEvents,
) -> Result<&'p mut OpenTextPart, DecodeFault> {
    Ok(match parts.entry(index) {
        Entry::Occupied(part) => part.into_mut(),
        Entry::Vacant(part) => {
            part.insert(OpenTextPart { block: output.start(BlockStart::Text)?, citations: 0 })
        }
    })
}
