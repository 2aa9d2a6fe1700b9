//! What helped after refusals of one configured model, for the owner or the thread whose request showed it.
//!
//! After an hour the full form is tried again, because providers change.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use tokio::time::Instant;

use super::media::value_of;
use crate::{
    form::{MediaForm, ReasoningForm, RequestForm, SystemForm},
    learned::{Learned, Scope},
};
use agui_protocol::ContentPart;
use agui_store::ThreadKey;

/// The time for which no form is tried after a refusal that none has mended.
const HOPELESS: Duration = Duration::from_secs(60);

pub(super) struct FormMemory {
    /// What the server takes: parameters, roles, places of instructions.
    of_owner: Learned<RequestForm>,
    /// What a thread's history needs, and the last form of a run that was refused too often.
    of_thread: Learned<RequestForm>,
    media: Learned<()>,
    hopeless: Learned<(u64, Instant)>,
}

impl Default for FormMemory {
    fn default() -> Self {
        Self {
            of_owner: Learned::by(Scope::Owner),
            of_thread: Learned::by(Scope::Thread),
            media: Learned::by(Scope::Thread),
            hopeless: Learned::by(Scope::Thread),
        }
    }
}

impl FormMemory {
    /// Returns the form in which a request is sent first.
    pub(super) fn first_form(&self, thread: Option<&ThreadKey>, model: &str) -> RequestForm {
        let own = self.of_owner.get(thread, model).unwrap_or_default();
        match self.of_thread.get(thread, model) {
            Some(of_thread) => joined(own, of_thread),
            None => own,
        }
    }

    /// Remembers the form of a request that the model has answered, and the media that it lacked.
    /// `passing` are the parameters that later requests may have.
    pub(super) fn answered(
        &self,
        thread: Option<&ThreadKey>,
        model: &str,
        form: &RequestForm,
        passing: &[&'static str],
        media: &[ContentPart],
    ) {
        let is_left_out = form.reasoning == ReasoningForm::LeftOut;
        let mut own = RequestForm { media: MediaForm::All, trimmed: 0, ..form.clone() };
        own.left_out.retain(|name| !passing.contains(name));
        if is_left_out {
            let reasoning = ReasoningForm::LeftOut;
            let of_thread = RequestForm { reasoning, ..RequestForm::default() };
            self.of_thread.set(thread, model, of_thread);
            own.reasoning = ReasoningForm::Usual;
        }
        if own != RequestForm::default() {
            // Concurrent requests are refused for other parameters.
            let known = self.of_owner.get(thread, model).unwrap_or_default();
            self.of_owner.set(thread, model, joined(known, own));
        }
        for value in media.iter().filter_map(value_of) {
            self.media.set(thread, (model, value), ());
        }
    }

    /// Remembers the last form of a request that was refused as often as it may be sent, so that
    /// the next message begins with it.
    pub(super) fn not_finished(
        &self,
        thread: Option<&ThreadKey>,
        model: &str,
        form: &RequestForm,
        passing: &[&'static str],
    ) {
        let mut form = RequestForm { media: MediaForm::All, trimmed: 0, ..form.clone() };
        form.left_out.retain(|name| !passing.contains(name));
        self.of_thread.set(thread, model, form);
    }

    /// Remembers a refusal that no form has mended.
    pub(super) fn hopeless(&self, thread: Option<&ThreadKey>, model: &str, words: &str) {
        self.hopeless.set(thread, model, (digest(words), Instant::now()));
    }

    pub(super) fn is_hopeless(&self, thread: Option<&ThreadKey>, model: &str, words: &str) -> bool {
        self.hopeless
            .get(thread, model)
            .is_some_and(|(refusal, at)| refusal == digest(words) && at.elapsed() < HOPELESS)
    }

    pub(super) fn is_refused(
        &self,
        thread: Option<&ThreadKey>,
        model: &str,
        medium: &ContentPart,
    ) -> bool {
        value_of(medium).is_some_and(|value| self.media.get(thread, (model, value)).is_some())
    }
}

fn digest(words: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    words.hash(&mut hasher);
    hasher.finish()
}

/// Returns a form that lacks what either form lacks.
fn joined(mut form: RequestForm, other: RequestForm) -> RequestForm {
    for name in other.left_out {
        if form.has(name) {
            form.left_out.push(name);
        }
    }
    form.token_limit = other.token_limit.or(form.token_limit);
    if other.system != SystemForm::Usual {
        form.system = other.system;
    }
    form.system_role |= other.system_role;
    form.alternates |= other.alternates;
    form.empty_content |= other.empty_content;
    form.no_user_after_results |= other.no_user_after_results;
    if other.reasoning != ReasoningForm::Usual {
        form.reasoning = other.reasoning;
    }
    form
}
