//! Thought signatures, as the artefacts of blocks.
//!
//! The API requires that a signature is sent back with its own part, and that a part with a
//! signature is not merged with another part:
//! <https://ai.google.dev/gemini-api/docs/thought-signatures>. A block of text consists of many
//! parts, so its artefact has the place of each signed part.

use serde_json::{Value, json};

use crate::Artefact;

/// Replaces a missing signature, such as on the calls of another provider's model.
pub(super) const PLACEHOLDER: &str = "skip_thought_signature_validator";

const KIND: &str = "gemini.thought_signature";
/// The beginning of a call's artefact. No other provider's artefact begins with it.
const CALL: &str = "gemini:call:";
const TEXT: &str = "gemini:text:";
const THOUGHT: &str = "gemini:thought:";

/// The signatures of the parts of a text, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TextSignatures {
    length: usize,
    /// The first byte of a part, the byte after its last one, and its signature.
    parts: Vec<(usize, usize, String)>,
}

impl TextSignatures {
    pub(super) fn add(&mut self, text: &str, signature: Option<&str>) {
        let start = self.length;
        self.length += text.len();
        self.parts.extend(signature.map(|signature| (start, self.length, signature.to_owned())));
    }

    /// Returns the artefact; `None` if no part has a signature.
    pub(super) fn artefact(&self, is_thought: bool) -> Option<Artefact> {
        let prefix = if is_thought { THOUGHT } else { TEXT };
        let is_signed = !self.parts.is_empty();
        is_signed
            .then(|| Artefact::new(KIND, format!("{prefix}{}", json!([self.length, self.parts]))))
    }
}

pub(super) fn call_artefact(signature: &str) -> Artefact {
    Artefact::new(KIND, format!("{CALL}{signature}"))
}

/// Returns the signature of a call; `None` for another artefact.
pub(super) fn call_signature(artefact: &str) -> Option<&str> {
    artefact.strip_prefix(CALL)
}

/// Returns the parts of a text. An artefact that does not belong to the text is ignored.
pub(super) fn text_parts(text: &str, artefact: Option<&str>) -> Vec<Value> {
    let signed = artefact.and_then(|artefact| split(text, artefact.strip_prefix(TEXT)?));
    let parts =
        signed.unwrap_or_else(|| if text.is_empty() { Vec::new() } else { vec![(text, None)] });
    parts.into_iter().map(|(text, signature)| part(text, signature)).collect()
}

/// Returns the parts of a thought. A thought without a signature is not sent back.
pub(super) fn thought_parts(text: &str, artefact: &str) -> Vec<Value> {
    let parts = artefact
        .strip_prefix(THOUGHT)
        .and_then(|signatures| split(text, signatures))
        .unwrap_or_default();
    let thought = |(text, signature)| {
        let mut part = part(text, signature);
        part["thought"] = true.into();
        part
    };
    parts.into_iter().map(thought).collect()
}

/// Returns whether the artefact belongs to a text.
pub(super) fn belongs_to_text(artefact: &str) -> bool {
    artefact.starts_with(TEXT)
}

fn part(text: &str, signature: Option<String>) -> Value {
    match signature {
        Some(signature) => json!({"text": text, "thoughtSignature": signature}),
        None => json!({"text": text}),
    }
}

/// Splits a text into its parts. Returns `None` if the signatures belong to another text.
fn split<'t>(text: &'t str, signatures: &str) -> Option<Vec<(&'t str, Option<String>)>> {
    let (length, signed): (usize, Vec<(usize, usize, String)>) =
        serde_json::from_str(signatures).ok()?;
    if length != text.len() {
        return None;
    }
    let mut parts = Vec::new();
    let mut at = 0;
    for (start, end, signature) in signed {
        let before = text.get(at..start)?;
        parts.extend((!before.is_empty()).then_some((before, None)));
        parts.push((text.get(start..end)?, Some(signature)));
        at = end;
    }
    let rest = text.get(at..)?;
    parts.extend((!rest.is_empty()).then_some((rest, None)));
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artefact(parts: &[(&str, Option<&str>)], is_thought: bool) -> Option<String> {
        let mut signatures = TextSignatures::default();
        for (text, signature) in parts {
            signatures.add(text, *signature);
        }
        signatures.artefact(is_thought).map(|artefact| artefact.value)
    }

    #[test]
    fn a_signature_comes_back_on_its_part() {
        let parts =
            [("grüß", None), (" dich", Some("a")), ("", Some("b")), (" !", None), ("", None)];
        let text: String = parts.iter().map(|(text, _)| *text).collect();
        let artefact = artefact(&parts, false).unwrap();
        let expected = [
            json!({"text": "grüß"}),
            json!({"text": " dich", "thoughtSignature": "a"}),
            json!({"text": "", "thoughtSignature": "b"}),
            json!({"text": " !"}),
        ];
        assert_eq!(text_parts(&text, Some(&artefact)), expected);
        assert!(belongs_to_text(&artefact));
        assert!(thought_parts(&text, &artefact).is_empty(), "a text is no thought");
    }

    #[test]
    fn an_artefact_of_another_text_is_ignored() {
        let signed = artefact(&[("a", Some("s"))], false).unwrap();
        for (text, artefact) in [
            ("changed", signed.as_str()),
            ("é", "gemini:text:[2,[[0,1,\"s\"]]]"),
            ("ab", "gemini:text:[2,[[1,0,\"s\"]]]"),
            ("ab", "gemini:text:[2,[[0,9,\"s\"]]]"),
            ("ab", "gemini:text:[2,[[1,2,\"s\"],[0,1,\"s\"]]]"),
            ("ab", "gemini:text:x"),
            ("ab", "opaque"),
        ] {
            assert_eq!(text_parts(text, Some(artefact)), [json!({"text": text})], "{artefact}");
        }
        assert_eq!(artefact(&[("a", None)], false), None);
        assert!(text_parts("", None).is_empty());
    }
}
