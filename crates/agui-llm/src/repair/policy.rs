//! The policy of the ladder: from a refused request, the refusal and the forms that were tried to the next form.
//!
//! 1. What the refusal names: parameters, reasoning, media, roles, the length. Again, as long as it names something new.
//! 2. All that loses nothing, together: instructions joined and first, an empty text for `null`, roles alternated.
//! 3. All that applies, together: no earlier reasoning, no media, and a shorter history if it fills half of the window.
//!
//! What a refusal names and no form may change is shown: tools, `tool_choice`, `store`, safety settings, `metadata`, members
//! of `extra_body`, amounts. No form is tried twice.

use super::{
    facts::RequestFacts,
    names::{Naming, named},
    parameters::{IfRefused, Parameter},
};
use crate::{
    form::{MediaForm, ReasoningForm, RequestForm, SystemForm},
    refusal::{FailureKind, ProviderRefusal},
};
use agui_base::repairs::Repair;

/// The shares of the tokens that shorter requests have. The last one has only what is always kept.
const SHARES: [f64; 3] = [0.7, 0.4, 0.0];

/// The beginnings of words in refusals of media.
const MEDIA: &[&str] = &[
    "image",
    "picture",
    "photo",
    "media",
    "mime",
    "file",
    "document",
    "pdf",
    "audio",
    "video",
    "base64",
    "pixel",
    "dimension",
];
const REASONING: &[&str] = &["reasoning", "thinking", "signature", "encrypted"];
/// The words of a refusal that misses something.
const MISSING: &[&str] = &["missing", "passed back", "must be provided"];
/// The names of instructions in refusals.
const INSTRUCTIONS: &[&str] = &[
    "system role",
    "system message",
    "system prompt",
    "system instruction",
    "'system'",
    "`system`",
    "\"system\"",
    "role: system",
    "developer instruction",
];
const NOT_TAKEN: &[&str] = &[
    "not support",
    "unsupported",
    "not enabled",
    "not allowed",
    "not permitted",
    "not one of",
    "unknown variant",
];

/// The next form of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NextForm {
    pub(super) form: RequestForm,
    /// The rung, for logs.
    pub(super) rung: &'static str,
    pub(super) repair: Repair,
    /// False if later requests may have what this form lacks in addition.
    pub(super) is_lasting: bool,
}

impl NextForm {
    fn new(rung: &'static str, form: RequestForm) -> Self {
        Self { form, rung, repair: Repair::PoorerForm, is_lasting: true }
    }
}

/// Returns the next form after a refusal; `None` if the refusal is shown. The last of the forms that were tried is the
/// refused one.
pub(super) fn next_form(
    facts: &RequestFacts,
    refusal: &ProviderRefusal,
    tried: &[RequestForm],
) -> Option<NextForm> {
    let refused = tried.last().cloned().unwrap_or_default();
    let is_new = |next: &NextForm| !tried.contains(&next.form);
    if !refusal.kind.may_be_mended() {
        return None;
    }
    if refusal.kind == FailureKind::ContextTooLong {
        return fewer_media(facts, &refused).or_else(|| shorter(facts, &refused)).filter(is_new);
    }
    match named(refusal) {
        Naming::Fixed => return None,
        Naming::Parameters { named, is_lasting } => {
            let next = without(&refused, &named)?;
            return Some(NextForm { is_lasting, ..next }).filter(is_new);
        }
        // One guess is enough.
        Naming::InDoubt(parameter) if tried.len() == 1 => {
            let next = without(&refused, &[parameter])?;
            return Some(NextForm { is_lasting: false, ..next }).filter(is_new);
        }
        Naming::InDoubt(_) | Naming::Nothing => {}
    }
    let words = refusal.words();
    let base = RequestForm {
        left_out: refused.left_out.clone(),
        token_limit: refused.token_limit,
        ..tried.first().cloned().unwrap_or_default()
    };
    let lossless = lossless(facts, base);
    let poorest = poorest(facts, lossless.clone());
    hinted(facts, &words, &refused)
        .filter(is_new)
        .or_else(|| Some(NextForm::new("lossless", lossless)).filter(is_new))
        .or_else(|| Some(NextForm::new("poorest", poorest)).filter(is_new))
}

/// Leaves out or renames parameters that were not changed before.
fn without(form: &RequestForm, named: &[&'static Parameter]) -> Option<NextForm> {
    let mut next = form.clone();
    for parameter in named {
        match parameter.if_refused {
            // Two names of one limit would replace each other endlessly.
            IfRefused::Rename(limit) if next.token_limit.is_none() => {
                next.token_limit = Some(limit)
            }
            IfRefused::LeaveOut if next.has(parameter.name) => next.left_out.push(parameter.name),
            IfRefused::Rename(_) | IfRefused::LeaveOut | IfRefused::Keep => {}
        }
    }
    let next = NextForm { repair: Repair::ParameterLeftOut, ..NextForm::new("parameter", next) };
    (next.form != *form).then_some(next)
}

/// Returns the form that the words of a refusal ask for.
fn hinted(facts: &RequestFacts, words: &str, refused: &RequestForm) -> Option<NextForm> {
    let has = |list: &[&str]| list.iter().any(|word| words.contains(word));
    let change = |rung, change: fn(&mut RequestForm)| {
        let mut form = refused.clone();
        change(&mut form);
        Some(NextForm::new(rung, form))
    };
    let is_about_reasoning = has(REASONING);
    if is_about_reasoning && has(MISSING) && refused.reasoning == ReasoningForm::Usual {
        return change("added_reasoning", |form| form.reasoning = ReasoningForm::Added);
    }
    if is_about_reasoning && (facts.reasoning || refused.reasoning == ReasoningForm::Added) {
        return change("reasoning", |form| form.reasoning = ReasoningForm::LeftOut);
    }
    if facts.developer_role && words.contains("developer") && !refused.system_role {
        return change("lossless", |form| form.system_role = true);
    }
    if facts.instructions && has(INSTRUCTIONS) && has(NOT_TAKEN) {
        return change("system_role", |form| form.system = SystemForm::InUser);
    }
    let is_user_after_tool = ["user", "after", "tool"].iter().all(|word| words.contains(word));
    if facts.user_after_results && is_user_after_tool {
        return change("user_after_tool", |form| form.no_user_after_results = true);
    }
    let begins_word = |word: &str| {
        words.match_indices(word).any(|(at, _)| !words[..at].ends_with(char::is_alphanumeric))
    };
    if MEDIA.iter().any(|word| begins_word(word)) {
        return fewer_media(facts, refused);
    }
    None
}

fn fewer_media(facts: &RequestFacts, refused: &RequestForm) -> Option<NextForm> {
    let media = match refused.media {
        MediaForm::All if facts.earlier_media => MediaForm::New,
        MediaForm::All | MediaForm::New if facts.new_media => MediaForm::None,
        _ => return None,
    };
    Some(NextForm::new("media", RequestForm { media, ..refused.clone() }))
}

/// Leaves out more of the history.
fn shorter(facts: &RequestFacts, refused: &RequestForm) -> Option<NextForm> {
    let trimmed = |share: &f64| match *share {
        0.0 => facts.removable,
        share => facts.tokens.saturating_sub((facts.tokens as f64 * share) as u64),
    };
    let mut amounts = SHARES.iter().map(|share| trimmed(share).min(facts.removable));
    let trimmed = amounts.find(|trimmed| *trimmed > refused.trimmed)?;
    Some(NextForm::new("trim", RequestForm { trimmed, ..refused.clone() }))
}

/// Changes all that loses nothing.
fn lossless(facts: &RequestFacts, mut form: RequestForm) -> RequestForm {
    if facts.spread_instructions && form.system == SystemForm::Usual {
        form.system = SystemForm::Joined;
    }
    form.system_role |= facts.developer_role;
    form.alternates |= facts.repeated_role;
    form.empty_content |= facts.null_content;
    form
}

/// Leaves out all that may be left out without being named.
fn poorest(facts: &RequestFacts, mut form: RequestForm) -> RequestForm {
    if facts.reasoning {
        form.reasoning = ReasoningForm::LeftOut;
    }
    if facts.earlier_media || facts.new_media {
        form.media = MediaForm::None;
    }
    if facts.is_long {
        form.trimmed = form.trimmed.max(facts.removable);
    }
    form
}

#[cfg(test)]
mod tests;
