//! Drops request parameters that the provider rejected, and thinking that it did not sign.
//!
//! A successful change is remembered for the owner of the request.

use bytes::Bytes;
use reqwest::Url;
use serde_json::Value;

use super::{
    parameters::Parameter,
    refusal_names::{Named, named},
};
use crate::{
    CallTrace,
    learned::{Learned, Scope},
};
use agui_base::repairs::{Partner, Repair, repaired};
use agui_store::ThreadKey;

/// The words of refusals of a parameter, in lower case. Refusals of a value, such as
/// `must be at most 2`, have none of them.
const REFUSALS: &[&str] = &[
    "unsupported",
    "not supported",
    "does not support",
    "unknown",
    "unrecognized",
    "extra inputs are not permitted",
    "extra_forbidden",
    "deprecated",
    ONLY_WITH_ANOTHER,
    "cannot both be specified",
    "may only be set to",
    // https://github.com/XCNXNXNX/dsh-portable-tavern/issues/1
    "allowed for this model",
];
/// The words of a refusal that does not apply to later requests.
const ONLY_WITH_ANOTHER: &str = "only allowed when";

/// The refused parameters of models, by the owner whose request was answered without them.
pub(super) struct RefusedParameters(Learned<Vec<&'static Parameter>>);

/// A request in the form that is sent next.
pub(super) struct RequestForm {
    pub(super) body: Bytes,
    thread: Option<ThreadKey>,
    /// The URL and the model. Either may have the model's name.
    model: (String, String),
    /// The parameters that refusals of this request named.
    left_out: Vec<&'static Parameter>,
    was_in_doubt: bool,
    /// The parameters to remember if the model answers.
    to_remember: Vec<&'static Parameter>,
}

impl Default for RefusedParameters {
    fn default() -> Self {
        Self(Learned::by(Scope::Owner))
    }
}

impl RefusedParameters {
    /// Returns a request without the parameters that were refused before.
    pub(super) fn first_form(
        &self,
        json: &Value,
        thread: Option<&ThreadKey>,
        url: &Url,
    ) -> RequestForm {
        let name = json.get("model").and_then(Value::as_str).unwrap_or_default();
        let model = (url.as_str().to_owned(), name.to_owned());
        let known = self.0.get(thread, &model).unwrap_or_default();
        let body = if known.is_empty() {
            json.to_string()
        } else {
            let mut json = json.clone();
            known.iter().for_each(|parameter| parameter.remove(&mut json));
            json.to_string()
        };
        let (thread, body) = (thread.cloned(), Bytes::from(body));
        RequestForm {
            body,
            thread,
            model,
            left_out: Vec::new(),
            was_in_doubt: false,
            to_remember: Vec::new(),
        }
    }

    /// Remembers the dropped parameters of a request that the model answers.
    pub(super) fn answered(&self, form: &mut RequestForm) {
        if form.to_remember.is_empty() {
            return;
        }
        let mut known = self.0.get(form.thread.as_ref(), &form.model).unwrap_or_default();
        for parameter in form.to_remember.drain(..) {
            // Concurrent requests are refused for the same parameter.
            if !known.iter().any(|known| known.name == parameter.name) {
                known.push(parameter);
            }
        }
        self.0.set(form.thread.as_ref(), &form.model, known);
    }
}

impl RequestForm {
    /// Drops the parameter that a refusal names. Returns false if the refusal names nothing that
    /// can be dropped, or if the request was sent in the largest number of forms.
    pub(super) fn change(&mut self, refusal: &str, trace: &CallTrace) -> bool {
        let Ok(mut json) = serde_json::from_slice::<Value>(&self.body) else { return false };
        let said = refusal.to_lowercase();
        let is_about_thinking =
            ["invalid", "signature", "thinking"].iter().all(|word| said.contains(word));
        let is_about_parameter =
            !is_about_thinking && REFUSALS.iter().any(|words| said.contains(words));
        let named = is_about_parameter.then(|| named(refusal, &mut json)).flatten();
        let named = named.filter(|named| self.is_new(named));
        let is_changed = named.is_some() || is_about_thinking && remove_thinking(&mut json);
        if !is_changed || !trace.count_changed_request() {
            return false;
        }
        repaired(Partner::Model, Repair::ParameterLeftOut);
        if let Some(Named { parameter, without, is_in_doubt }) = named {
            tracing::warn!(
                parameter = parameter.name,
                replaced_by = parameter.other_name(),
                is_in_doubt,
                "a model provider refused a parameter; asking again without it"
            );
            json = without;
            self.left_out.push(parameter);
            self.was_in_doubt |= is_in_doubt;
            let is_lasting = !is_in_doubt && !said.contains(ONLY_WITH_ANOTHER);
            self.to_remember.extend(is_lasting.then_some(parameter));
        } else {
            tracing::warn!(
                "a model provider refused the signature of earlier thinking; asking again without thinking"
            );
        }
        self.body = Bytes::from(json.to_string());
        true
    }

    /// Returns whether a change was not tried yet. Two names of one limit would replace each other
    /// endlessly, and one guess in doubt is enough.
    fn is_new(&self, named: &Named) -> bool {
        let name = named.parameter.name;
        let was_left_out = self
            .left_out
            .iter()
            .any(|other| other.name == name || other.other_name() == Some(name));
        !(was_left_out || named.is_in_doubt && self.was_in_doubt)
    }
}

/// Removes the thinking of a request. Returns false if it has none. Signatures are valid only at
/// the server and for the model that made them: <https://github.com/can1357/oh-my-pi/issues/6379>,
/// <https://github.com/vybestack/llxprt-code/issues/2335>.
fn remove_thinking(json: &mut Value) -> bool {
    let is_thinking =
        |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let mut is_changed = false;
    for message in json.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(Value::Array(blocks)) = message.get_mut("content") else { continue };
        let before = blocks.len();
        blocks.retain(|block| !is_thinking(block));
        is_changed |= blocks.len() != before;
    }
    // With a thinking budget, calls need thinking before them.
    if json.pointer("/thinking/type").is_some_and(|kind| kind == "enabled") {
        json.as_object_mut().into_iter().for_each(|members| drop(members.shift_remove("thinking")));
    }
    is_changed
}

#[cfg(test)]
mod tests;
