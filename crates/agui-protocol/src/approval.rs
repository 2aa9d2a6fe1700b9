//! Approvals: a person's yes or no to something that an agent wants to do.
//!
//! An agent asks with an [`Interrupt`](super::Interrupt) whose schema is [`approval_schema`].
//! [`ApprovalDecision::from_entry`] holds the only rule for a yes: the entry is resolved, its
//! payload is an object with `"approved": true`, and `editedArgs`, if there are any, are an object
//! and were offered. After any other reply the action is not done.

use serde_json::{Value, json};

use super::{JsonObject, ResumeEntry, ResumeStatus};
use agui_base::text::is_hidden;

const APPROVED: &str = "approved";
const EDITED_ARGS: &str = "editedArgs";
const REASON: &str = "reason";

/// The part of a name or of a text that a question shows.
const MAX_SHOWN_CHARS: usize = 500;

const YES_TEXTS: [&str; 7] = ["yes", "approve", "approved", "accepted", "是", "同意", "批准"];
const NO_TEXTS: [&str; 5] = ["no", "reject", "rejected", "拒绝", "不"];

/// A person's reply to a question for approval.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalDecision {
    /// A clear yes.
    Approved {
        /// The arguments to use in place of the asked ones.
        edited_args: Option<JsonObject>,
    },
    /// A no.
    Declined {
        /// The person's reason.
        reason: Option<String>,
    },
    /// The interrupt was cancelled.
    Cancelled,
    /// Neither a yes nor a no. The action is not done, as after a no.
    Unclear,
}

impl ApprovalDecision {
    /// Reads a reply. `allows_edits` is `true` if the question offered to edit the arguments.
    pub fn from_entry(entry: &ResumeEntry, allows_edits: bool) -> Self {
        if entry.status == ResumeStatus::Cancelled {
            return Self::Cancelled;
        }
        let Some(Value::Object(reply)) = &entry.payload else { return Self::Unclear };
        match (reply.get(APPROVED), reply.get(EDITED_ARGS)) {
            (Some(Value::Bool(true)), None | Some(Value::Null)) => {
                Self::Approved { edited_args: None }
            }
            (Some(Value::Bool(true)), Some(Value::Object(args))) if allows_edits => {
                Self::Approved { edited_args: Some(args.clone()) }
            }
            (Some(Value::Bool(false)), _) => {
                let reason = reply
                    .get(REASON)
                    .and_then(Value::as_str)
                    .filter(|reason| !reason.trim().is_empty());
                Self::Declined { reason: reason.map(str::to_owned) }
            }
            _ => Self::Unclear,
        }
    }

    /// Reads a reply that is a text, without regard to case and punctuation around it: `yes`, `approve`, `approved`,
    /// `accepted`, `是`, `同意` and `批准` are a yes; `no`, `reject`, `rejected`, `拒绝` and `不` are a no.
    pub fn from_text(text: &str) -> Self {
        let text = text.trim_matches(|char: char| {
            char.is_whitespace() || ".!,;'\"`。！，；“”‘’「」".contains(char)
        });
        let is_one_of = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if is_one_of(&YES_TEXTS) {
            Self::Approved { edited_args: None }
        } else if is_one_of(&NO_TEXTS) {
            Self::Declined { reason: None }
        } else {
            Self::Unclear
        }
    }

    /// Returns whether the reply is a yes.
    pub fn is_approved(&self) -> bool {
        matches!(self, Self::Approved { .. })
    }

    /// Returns the payload that [`from_entry`](Self::from_entry) reads as this decision. A
    /// cancelled or unclear reply becomes a no.
    pub fn to_payload(&self) -> JsonObject {
        let detail = match self {
            Self::Approved { edited_args: Some(args) } => {
                Some((EDITED_ARGS, Value::Object(args.clone())))
            }
            Self::Declined { reason: Some(reason) } => Some((REASON, reason.as_str().into())),
            _ => None,
        };
        let members = [(APPROVED, self.is_approved().into())].into_iter().chain(detail);
        members.map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Returns arguments as JSON for the text of a question, with every member. A long name or text is
/// cut, with its length after the quotes. Hidden characters are escape sequences.
pub fn shown_arguments(arguments: &JsonObject) -> String {
    let mut shown = String::new();
    show_object(arguments, &mut shown);
    shown
}

/// Returns a text with escape sequences for hidden characters.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    text.chars().for_each(|c| show_char(c, &mut visible));
    visible
}

fn show_object(members: &JsonObject, shown: &mut String) {
    shown.push('{');
    for (at, (name, value)) in members.iter().enumerate() {
        shown.push_str(if at > 0 { "," } else { "" });
        show_text(name, shown);
        shown.push(':');
        show(value, shown);
    }
    shown.push('}');
}

/// The parser refuses more than 128 levels, so the recursion is bounded.
fn show(value: &Value, shown: &mut String) {
    match value {
        Value::Object(members) => show_object(members, shown),
        Value::Array(items) => {
            shown.push('[');
            for (at, item) in items.iter().enumerate() {
                shown.push_str(if at > 0 { "," } else { "" });
                show(item, shown);
            }
            shown.push(']');
        }
        Value::String(text) => show_text(text, shown),
        scalar => shown.push_str(&scalar.to_string()),
    }
}

fn show_text(text: &str, shown: &mut String) {
    let end = text.char_indices().nth(MAX_SHOWN_CHARS).map_or(text.len(), |(end, _)| end);
    shown.push('"');
    for c in text[..end].chars() {
        if matches!(c, '"' | '\\') {
            shown.push('\\');
        }
        show_char(c, shown);
    }
    shown.push('"');
    if end < text.len() {
        // The length is outside of the quotes, so that no text can imitate it.
        shown.push_str(&format!("… ({} characters)", text.chars().count()));
    }
}

fn show_char(c: char, shown: &mut String) {
    match c {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c if is_hidden(c) => {
            c.encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        }
        c => shown.push(c),
    }
}

/// Returns the schema of a reply. With the schema of the arguments, the person can edit them and give a reason.
pub fn approval_schema(edited_args: Option<Value>) -> JsonObject {
    let mut properties = json!({ APPROVED: { "type": "boolean" } });
    if let Some(arguments) = edited_args {
        properties[EDITED_ARGS] = arguments;
        properties[REASON] = json!({ "type": "string" });
    }
    JsonObject::from_iter([
        ("type".to_owned(), "object".into()),
        ("properties".to_owned(), properties),
        ("required".to_owned(), json!([APPROVED])),
    ])
}

/// Returns whether a schema asks for approval: it describes the member `approved`.
pub fn asks_for_approval(schema: &JsonObject) -> bool {
    has_property(schema, APPROVED)
}

/// Returns whether a schema lets the person edit the arguments: it describes the member `editedArgs`.
pub fn allows_edits(schema: &JsonObject) -> bool {
    has_property(schema, EDITED_ARGS)
}

/// Returns whether a reply of this schema can have a reason.
pub fn allows_reason(schema: &JsonObject) -> bool {
    has_property(schema, REASON) || schema.get("additionalProperties") != Some(&Value::Bool(false))
}

fn has_property(schema: &JsonObject, member: &str) -> bool {
    schema.get("properties").is_some_and(|properties| properties.get(member).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(payload: Value) -> ResumeEntry {
        let (interrupt_id, status) = ("i".into(), ResumeStatus::Resolved);
        ResumeEntry { interrupt_id, status, payload: Some(payload), metadata: None }
    }

    fn approved(edited_args: Value) -> ApprovalDecision {
        ApprovalDecision::Approved { edited_args: edited_args.as_object().cloned() }
    }

    fn declined(reason: Option<&str>) -> ApprovalDecision {
        ApprovalDecision::Declined { reason: reason.map(str::to_owned) }
    }

    #[test]
    fn only_approved_true_is_a_yes() {
        use ApprovalDecision::Unclear;
        let args = json!({ "n": 1 });
        for (payload, with_edits, without_edits) in [
            (json!({ "approved": true }), approved(Value::Null), approved(Value::Null)),
            (
                json!({ "approved": true, "note": "x" }),
                approved(Value::Null),
                approved(Value::Null),
            ),
            (
                json!({ "approved": true, "editedArgs": null }),
                approved(Value::Null),
                approved(Value::Null),
            ),
            (json!({ "approved": true, "editedArgs": args }), approved(args.clone()), Unclear),
            (json!({ "approved": true, "editedArgs": {} }), approved(json!({})), Unclear),
            (json!({ "approved": true, "editedArgs": "rm -rf /" }), Unclear, Unclear),
            (json!({ "approved": true, "editedArgs": [] }), Unclear, Unclear),
            (json!({ "approved": false }), declined(None), declined(None)),
            (json!({ "approved": false, "editedArgs": {} }), declined(None), declined(None)),
            (json!({ "approved": false, "reason": " " }), declined(None), declined(None)),
            (
                json!({ "approved": false, "reason": "dear" }),
                declined(Some("dear")),
                declined(Some("dear")),
            ),
            (json!({ "approved": "true" }), Unclear, Unclear),
            (json!({ "approved": 1 }), Unclear, Unclear),
            (json!({ "approved": null }), Unclear, Unclear),
            (json!({ "Approved": true }), Unclear, Unclear),
            (json!({}), Unclear, Unclear),
            (json!([{ "approved": true }]), Unclear, Unclear),
            (json!(true), Unclear, Unclear),
            (json!("yes"), Unclear, Unclear),
            (json!(null), Unclear, Unclear),
        ] {
            let entry = resolved(payload);
            assert_eq!(ApprovalDecision::from_entry(&entry, true), with_edits, "{entry:?}");
            assert_eq!(ApprovalDecision::from_entry(&entry, false), without_edits, "{entry:?}");
            let cancelled = ResumeEntry { status: ResumeStatus::Cancelled, ..entry };
            assert_eq!(ApprovalDecision::from_entry(&cancelled, true), ApprovalDecision::Cancelled);
        }
        let without_payload = ResumeEntry { payload: None, ..resolved(Value::Null) };
        assert_eq!(ApprovalDecision::from_entry(&without_payload, true), Unclear);
    }

    #[test]
    fn only_the_words_for_yes_and_no_are_clear() {
        for text in [
            "yes",
            "Yes.",
            "approve",
            " Approved\n",
            "ACCEPTED",
            "是",
            "同意。",
            "批准！",
            "「同意」",
        ] {
            assert_eq!(ApprovalDecision::from_text(text), approved(Value::Null), "{text}");
        }
        for text in ["no", "NO!", "reject", "REJECTED ", "拒绝", "不。"] {
            assert_eq!(ApprovalDecision::from_text(text), declined(None), "{text}");
        }
        for text in [
            "",
            ".",
            "approve it",
            "I do not approve",
            "true",
            "不是",
            "不同意",
            "yes no",
            "yes, but",
            "是吗？",
        ] {
            assert_eq!(ApprovalDecision::from_text(text), ApprovalDecision::Unclear, "{text}");
        }
    }

    #[test]
    fn a_decision_is_read_back_from_its_payload() {
        for decision in [
            approved(Value::Null),
            approved(json!({ "n": 1 })),
            declined(None),
            declined(Some("dear")),
        ] {
            let payload = Value::Object(decision.to_payload());
            assert_eq!(ApprovalDecision::from_entry(&resolved(payload), true), decision);
        }
        for decision in [ApprovalDecision::Cancelled, ApprovalDecision::Unclear] {
            assert_eq!(Value::Object(decision.to_payload()), json!({ "approved": false }));
        }
    }

    #[test]
    fn a_question_shows_every_member_and_each_hidden_character() {
        let shown = |arguments: Value| shown_arguments(arguments.as_object().unwrap());
        assert_eq!(
            shown(json!({ "a": [1, null, { "b": "x\"\\\n" }], "c": true })),
            r#"{"a":[1,null,{"b":"x\"\\\n"}],"c":true}"#
        );
        let (long, name) = ("é".repeat(501), "n".repeat(600));
        let after =
            shown(json!({ "options": { "text": long, "delete": true, &name: 1 }, "to": "eve" }));
        assert!(
            after.contains(&format!("\"{}\"… (501 characters),\"delete\":true", "é".repeat(500))),
            "{after}"
        );
        assert!(
            after.contains("n\"… (600 characters):1") && after.ends_with("\"to\":\"eve\"}"),
            "{after}"
        );
        // A text cannot look like a cut one, or like the end of its member.
        assert_eq!(shown(json!({ "a": "b\"… (9 characters)" })), r#"{"a":"b\"… (9 characters)"}"#);
        let hidden = "\u{1b}\u{202e}\u{200b}\u{2028}\u{feff}\u{e0041}\u{85}\u{3164}";
        let escaped = "\\u001b\\u202e\\u200b\\u2028\\ufeff\\udb40\\udc41\\u0085\\u3164";
        assert_eq!(shown(json!({ hidden: hidden })), format!("{{\"{escaped}\":\"{escaped}\"}}"));
        assert_eq!(shown(json!({ "to": "Grüße, 你好" })), r#"{"to":"Grüße, 你好"}"#);
    }

    #[test]
    fn a_schema_offers_edits_if_it_is_made_with_a_schema_of_the_arguments() {
        let (plain, editable) =
            (approval_schema(None), approval_schema(Some(json!({ "type": "object" }))));
        assert!(asks_for_approval(&plain) && !allows_edits(&plain) && allows_reason(&plain));
        assert!(
            asks_for_approval(&editable) && allows_edits(&editable) && allows_reason(&editable)
        );
        let closed = JsonObject::from_iter([("additionalProperties".to_owned(), false.into())]);
        assert!(!asks_for_approval(&closed) && !allows_reason(&closed));
    }
}
