//! A model that is asked again in poorer forms of a request while its provider refuses it.

use std::sync::Arc;

use async_stream::stream;
use futures::StreamExt as _;

use super::{
    facts::RequestFacts,
    media::{has_media, reports, take_media},
    memory::FormMemory,
    policy::{NextForm, next_form},
};
use crate::{
    form::{MediaForm, RequestForm, SystemForm},
    model::{
        Model, ModelError, ModelEvent, ModelRequest, ModelStep, ModelStream, SkippedAttachment,
        StopReason, delegate_model,
    },
    refusal::{FailureKind, ProviderRefusal},
    window::{Asked, ModelWindow, WindowOptions, WindowPolicy, estimate, media_fit, trim},
};
use agui_base::repairs::{Partner, repaired};
use agui_protocol::ContentPart;
use agui_store::ThreadKey;

/// Asks a model again in poorer forms. A model that has begun its answer is not asked again.
pub(crate) struct LadderModel {
    model: Arc<dyn Model>,
    window: Arc<ModelWindow>,
    memory: Arc<FormMemory>,
}

impl LadderModel {
    /// A model without a configured window.
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self::within(model, Arc::new(ModelWindow::new(WindowOptions::default())))
    }

    pub(super) fn within(model: Arc<dyn Model>, window: Arc<ModelWindow>) -> Self {
        Self { model, window, memory: Arc::default() }
    }
}

impl Model for LadderModel {
    delegate_model!(model);

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let (model, window, memory) =
            (self.model.clone(), self.window.clone(), self.memory.clone());
        stream! {
            let fitted = fit(&mut request, &*model, &window, &memory).await;
            let mut climb = Climb::new(request, fitted, &*model, window, memory);
            loop {
                let mut answer = model.stream(climb.written());
                let (mut skipped, mut shows_work) = (Vec::new(), false);
                let error = loop {
                    match answer.next().await {
                        Some(Ok(ModelEvent::Skipped(attachment))) => skipped.push(attachment),
                        // A later report replaces this one.
                        Some(Ok(ModelEvent::Usage(usage))) => {
                            shows_work |= usage.output_tokens.is_some_and(|tokens| tokens > 0);
                            // Counts of a shorter request say nothing about this one.
                            if climb.take_trimmed() {
                                yield Ok(ModelEvent::Trimmed);
                            }
                            yield Ok(ModelEvent::Usage(usage));
                        }
                        Some(Err(error)) => break error,
                        first => {
                            if let Some(Ok(first)) = &first {
                                climb.answered(first);
                            }
                            for attachment in climb.left_out().chain(skipped) {
                                yield Ok(ModelEvent::Skipped(attachment));
                            }
                            if climb.take_trimmed() {
                                yield Ok(ModelEvent::Trimmed);
                            }
                            let mut item = first;
                            while let Some(event) = item {
                                yield event;
                                item = answer.next().await;
                            }
                            return;
                        }
                    }
                };
                drop(answer);
                if shows_work || !climb.change(&error) {
                    for attachment in climb.left_out().chain(skipped) {
                        yield Ok(ModelEvent::Skipped(attachment));
                    }
                    yield Err(error.into_final());
                    return;
                }
            }
        }
        .boxed()
    }
}

/// What a request lacks before it is sent.
struct Fitted {
    left_out: Vec<SkippedAttachment>,
    is_trimmed: bool,
}

/// Fits media into the provider's limits, and leaves out what the thread's earlier refusals named.
async fn fit(
    request: &mut ModelRequest,
    model: &dyn Model,
    window: &ModelWindow,
    memory: &FormMemory,
) -> Fitted {
    let mut left_out = Vec::new();
    let thread = request.thread.clone();
    let name = request.model.clone().unwrap_or_else(|| model.name().to_owned());
    if has_media(&mut request.steps) {
        let anonymous = || ThreadKey::ANONYMOUS.into();
        let owner = thread.as_ref().map_or_else(anonymous, |thread| thread.owner.clone());
        let first_new = first_new(&request.steps);
        left_out =
            media_fit::fit(&mut request.steps, first_new, &model.media_limits(), &owner).await;
        // Refused media are known by the bytes that were sent: scaling gives the same bytes each
        // time.
        take_media(&mut request.steps, |part| memory.is_refused(thread.as_ref(), &name, part));
    }
    let asked = Asked::new(thread.as_ref(), request, model);
    let mut is_trimmed = false;
    if window.options.policy != WindowPolicy::Fail
        && let Some(limit) = window.refused_limit(&asked)
    {
        let excess = estimate::request_tokens(request).saturating_sub(limit);
        is_trimmed = excess > 0 && trim::trim(&mut request.steps, excess);
    }
    Fitted { left_out, is_trimmed }
}

fn first_new(steps: &[ModelStep]) -> usize {
    let last_answer = steps.iter().rposition(|step| matches!(step, ModelStep::Assistant(_)));
    last_answer.map_or(0, |last| last + 1)
}

/// A request in the forms that were tried for one answer.
struct Climb {
    request: ModelRequest,
    /// The first step after the last answer.
    first_new: usize,
    model: String,
    provider: String,
    window: Arc<ModelWindow>,
    asked: Asked,
    memory: Arc<FormMemory>,
    /// The last one is sent next.
    tried: Vec<RequestForm>,
    /// The parameters that are left out of this answer's request alone.
    passing: Vec<&'static str>,
    /// The media that the provider's limits leave out.
    fitted: Vec<SkippedAttachment>,
    /// The media that the form leaves out: earlier ones, new ones.
    taken: [Vec<ContentPart>; 2],
    /// The media that the last change of their form has left out. A refusal before may have been about other media.
    blamed: Vec<ContentPart>,
    /// The provider's words about media.
    reason: String,
    /// True if the history is shorter in each form.
    was_trimmed: bool,
    /// True if the history is shorter, and the client was not told.
    is_trimmed: bool,
    /// True if the last refusal before this form named nothing.
    has_guessed: bool,
    /// The tokens of the request before a history was left out without words about its length.
    refused_tokens: Option<u64>,
}

impl Climb {
    fn new(
        request: ModelRequest,
        fitted: Fitted,
        model: &dyn Model,
        window: Arc<ModelWindow>,
        memory: Arc<FormMemory>,
    ) -> Self {
        let asked = Asked::new(request.thread.as_ref(), &request, model);
        let first = memory.first_form(request.thread.as_ref(), &asked.model);
        Self {
            first_new: first_new(&request.steps),
            request,
            model: asked.model.clone(),
            provider: model.provider().to_owned(),
            window,
            asked,
            memory,
            tried: vec![first],
            passing: Vec::new(),
            fitted: fitted.left_out,
            was_trimmed: fitted.is_trimmed,
            taken: Default::default(),
            blamed: Vec::new(),
            reason: String::new(),
            is_trimmed: false,
            has_guessed: false,
            refused_tokens: None,
        }
    }

    fn form(&self) -> &RequestForm {
        &self.tried[self.tried.len() - 1]
    }

    /// Returns the request in the form that is sent next.
    fn written(&mut self) -> ModelRequest {
        let mut written = self.request.clone();
        written.form = self.form().clone();
        let (earlier, new) = written.steps.split_at_mut(self.first_new);
        let media = written.form.media;
        let take = |steps, is_taken| match is_taken {
            true => take_media(steps, |_| true),
            false => Vec::new(),
        };
        self.taken = [take(earlier, media >= MediaForm::New), take(new, media == MediaForm::None)];
        let before = self.tried.iter().rev().nth(1).map_or(MediaForm::All, |form| form.media);
        if media != before {
            let [earlier, new] = &self.taken;
            let blamed = [(MediaForm::New, earlier), (MediaForm::None, new)];
            let blamed = blamed.into_iter().filter(|(form, _)| before < *form);
            self.blamed = blamed.flat_map(|(_, parts)| parts.iter().cloned()).collect();
        }
        let trimmed = written.form.trimmed;
        let is_shorter = trimmed > 0 && trim::trim(&mut written.steps, trimmed);
        self.is_trimmed = is_shorter || self.was_trimmed;
        written
    }

    /// Returns whether the history is shorter, once for each form.
    fn take_trimmed(&mut self) -> bool {
        std::mem::take(&mut self.is_trimmed)
    }

    /// Returns the reports of the media that the request lacks.
    fn left_out(&mut self) -> impl Iterator<Item = SkippedAttachment> + use<> {
        let mut all = std::mem::take(&mut self.fitted);
        let [earlier, new] = &self.taken;
        all.extend(reports(earlier, &self.reason).chain(reports(new, &self.reason)));
        all.into_iter()
    }

    /// Remembers the form of a request that the model answers.
    fn answered(&self, first: &ModelEvent) {
        let is_filtered =
            matches!(first, ModelEvent::Stop(StopReason::Filtered | StopReason::MalformedCall));
        if self.tried.len() == 1 || is_filtered {
            return;
        }
        let thread = self.request.thread.as_ref();
        self.memory.answered(thread, &self.model, self.form(), &self.passing, &self.blamed);
        if let Some(refused) = self.refused_tokens {
            // Nothing has said that the length was the reason, so the limit is between both.
            let limit = (refused as f64 * self.sent_tokens() as f64).sqrt();
            self.window.refused(&self.asked, limit as u64);
        }
    }

    /// Changes the form after a refusal. Returns false if the error is shown.
    fn change(&mut self, error: &ModelError) -> bool {
        let Some(refusal) = error.refusal() else { return false };
        let (thread, words) = (self.request.thread.clone(), refusal.words());
        if self.tried.len() == 1 && self.memory.is_hopeless(thread.as_ref(), &self.model, &words) {
            return false;
        }
        let facts = self.facts(&refusal);
        let Some(next) = next_form(&facts, &refusal, &self.tried) else {
            if self.has_guessed {
                self.memory.hopeless(thread.as_ref(), &self.model, &words);
            }
            return false;
        };
        if !self.request.trace.count_changed_request() {
            self.memory.not_finished(thread.as_ref(), &self.model, self.form(), &self.passing);
            return false;
        }
        self.take(next, error);
        true
    }

    fn facts(&mut self, refusal: &ProviderRefusal) -> RequestFacts {
        let may_trim = self.window.options.policy != WindowPolicy::Fail;
        let window = self.window.known_tokens(&self.asked);
        // Later requests of the thread use what is learned, so a guess must not be learned.
        if refusal.kind == FailureKind::ContextTooLong && !estimate::is_rough(&self.request) {
            self.window.refused(&self.asked, self.sent_tokens());
        }
        RequestFacts::new(&mut self.request, self.first_new, refusal, window, may_trim)
    }

    /// Returns the estimated tokens of the request in its form.
    fn sent_tokens(&self) -> u64 {
        let mut sent = self.request.clone();
        trim::trim(&mut sent.steps, self.form().trimmed);
        estimate::request_tokens(&sent)
    }

    fn take(&mut self, next: NextForm, error: &ModelError) {
        let NextForm { form, rung, repair, is_lasting } = next;
        let before = self.form().clone();
        if form.media != before.media {
            self.reason = format!("the provider refused it: {}", error.message());
        }
        tracing::warn!(
            provider = self.provider,
            model = self.model,
            rung,
            ?error,
            "a model provider refused a request; asking again in a poorer form"
        );
        if form.system == SystemForm::InUser && before.system != SystemForm::InUser {
            tracing::warn!(
                model = self.model,
                "the model takes no system messages: its instructions lose their authority, because they are in a \
                 user's message now"
            );
        }
        repaired(Partner::Model, repair);
        let is_guess = form.trimmed > before.trimmed && rung == "poorest";
        if is_guess && !estimate::is_rough(&self.request) {
            self.refused_tokens = Some(self.sent_tokens());
        }
        if !is_lasting {
            let new = form.left_out.iter().filter(|name| before.has(name));
            self.passing.extend(new);
        }
        self.has_guessed = matches!(rung, "lossless" | "poorest");
        self.tried.push(form);
    }
}
