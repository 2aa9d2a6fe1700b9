//! Asks a model again without media that its provider refuses, so that no image makes a thread
//! unusable: first without the media of earlier steps, then without any. Refused media are not sent
//! again with the same thread.

use std::sync::Arc;

use async_stream::stream;
use futures::StreamExt as _;

use super::{
    Beginning,
    media_fit::{each_medium, fit},
    options::CONTEXT_TOO_LONG,
};
use crate::{
    learned::{Learned, Scope},
    model::{
        Model, ModelError, ModelEvent, ModelRequest, ModelStep, ModelStream, SkippedAttachment,
        delegate_model,
    },
    providers::wire::{media, skipped_attachment},
};
use agui_base::RunErrorCode;
use agui_protocol::{ContentPart, PartSource};
use agui_store::ThreadKey;

/// The words of refusals that are about media.
const WORDS: [&str; 13] = [
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

pub(crate) struct MediaRetryModel {
    model: Arc<dyn Model>,
    refused: Arc<RefusedMedia>,
}

impl MediaRetryModel {
    pub(crate) fn new(model: Arc<dyn Model>) -> Self {
        Self { model, refused: Arc::new(RefusedMedia(Learned::by(Scope::Thread))) }
    }
}

impl Model for MediaRetryModel {
    delegate_model!(model);

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let model = self.model.clone();
        let refused = self.refused.clone();
        let limits = model.media_limits();
        let name = request.model.clone().unwrap_or_else(|| model.name().to_owned());
        let (thread, trace) = (request.thread.clone(), request.trace.clone());
        if !has_media(&mut request.steps) {
            return model.stream(request);
        }
        let stream = stream! {
            let last_answer = request.steps.iter().rposition(|step| matches!(step, ModelStep::Assistant(_)));
            let first_new = last_answer.map_or(0, |last| last + 1);
            let owner = request.thread.as_ref().map_or_else(|| ThreadKey::ANONYMOUS.into(), |thread| thread.owner.clone());
            let mut left_out: Vec<SkippedAttachment> = fit(&mut request.steps, first_new, &limits, &owner).await;
            // Refused media are known by the bytes that were sent: scaling gives the same bytes
            // each time.
            take_media(&mut request.steps, |part| refused.contains(thread.as_ref(), &name, part));
            // The media that were left out last. A refusal before may have been about other media.
            let mut blamed: Vec<ContentPart> = Vec::new();
            loop {
                let fewer = has_media(&mut request.steps).then(|| request.clone());
                let mut answer = model.stream(std::mem::take(&mut request));
                let Beginning { skipped, first } = Beginning::read(&mut answer).await;
                let (error, mut fewer) = match (first, fewer) {
                    (Some(Err(error)), Some(fewer)) if is_about_media(&error) && trace.count_changed_request() => {
                        (error, fewer)
                    }
                    (first, _) => {
                        if let Some(Ok(_)) = &first {
                            blamed.iter().for_each(|part| refused.add(thread.as_ref(), &name, part));
                        }
                        for attachment in left_out.into_iter().chain(skipped) {
                            yield Ok(ModelEvent::Skipped(attachment));
                        }
                        let mut item = first;
                        while let Some(event) = item {
                            yield event;
                            item = answer.next().await;
                        }
                        return;
                    }
                };
                let (earlier, new) = fewer.steps.split_at_mut(first_new);
                blamed = take_media(if has_media(earlier) { earlier } else { new }, |_| true);
                tracing::warn!(model = name, ?error, media = blamed.len(), "a model provider refused media; trying again without");
                let reason = format!("the provider refused it: {}", error.message());
                left_out.extend(blamed.iter().filter_map(|part| skipped_attachment(part, &reason)));
                request = fewer;
            }
        };
        stream.boxed()
    }
}

/// The media that a provider has refused.
struct RefusedMedia(Learned<()>);

impl RefusedMedia {
    fn contains(&self, thread: Option<&ThreadKey>, model: &str, part: &ContentPart) -> bool {
        media(part)
            .is_ok_and(|(_, media)| self.0.get(thread, (model, value_of(&media.source))).is_some())
    }

    fn add(&self, thread: Option<&ThreadKey>, model: &str, part: &ContentPart) {
        if let Ok((_, media)) = media(part) {
            self.0.set(thread, (model, value_of(&media.source)), ());
        }
    }
}

fn value_of(source: &PartSource) -> &str {
    match source {
        PartSource::Data { value, .. }
        | PartSource::Url { value, .. }
        | PartSource::File { value, .. } => value,
    }
}

/// A request that is too long may be so because of its media.
fn is_about_media(error: &ModelError) -> bool {
    if error.code() != RunErrorCode::ModelRejected.as_str() {
        return error.code() == CONTEXT_TOO_LONG;
    }
    let message = error.message().to_lowercase();
    WORDS.iter().any(|word| message.contains(word))
}

fn has_media(steps: &mut [ModelStep]) -> bool {
    let mut found = false;
    each_medium(steps, |_| found = true);
    found
}

/// Puts notes in place of media, and returns these.
fn take_media(steps: &mut [ModelStep], takes: impl Fn(&ContentPart) -> bool) -> Vec<ContentPart> {
    let mut taken = Vec::new();
    each_medium(steps, |part| {
        if takes(part)
            && let Ok((kind, _)) = media(part)
        {
            let note = ContentPart::text(format!(
                "(Here was an attachment, {kind}, that you cannot read.)"
            ));
            taken.push(std::mem::replace(part, note));
        }
    });
    taken
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::model::{Block, StopReason};

    /// Refuses requests with one of these values, and records how many media each request had.
    struct Picky {
        refuses: &'static [&'static str],
        message: &'static str,
        seen: Arc<Mutex<Vec<Vec<String>>>>,
    }

    impl Model for Picky {
        fn provider(&self) -> &str {
            "picky"
        }

        fn name(&self) -> &str {
            "m"
        }

        fn stream(&self, mut request: ModelRequest) -> ModelStream {
            let mut values = Vec::new();
            each_medium(&mut request.steps, |part| {
                values.push(value_of(&media(part).unwrap().1.source).to_owned())
            });
            let is_refused = values.iter().any(|value| self.refuses.contains(&value.as_str()));
            self.seen.lock().push(values);
            stream::iter(match is_refused {
                true => {
                    vec![Err(ModelError::new(RunErrorCode::ModelRejected.as_str(), self.message))]
                }
                false => vec![Ok(ModelEvent::Stop(StopReason::Done))],
            })
            .boxed()
        }
    }

    fn user(value: &str) -> ModelStep {
        let image = json!({ "type": "image", "source": { "type": "data", "value": value, "mimeType": "image/png" } });
        ModelStep::User(vec![ContentPart::text("look"), serde_json::from_value(image).unwrap()])
    }

    fn conversation((owner, thread): (&str, &str), values: &[&str]) -> ModelRequest {
        let mut steps = Vec::new();
        for value in values {
            steps.extend([user(value), ModelStep::Assistant(vec![Block::Text("yes".to_owned())])]);
        }
        steps.pop();
        let thread = Some(ThreadKey { owner: owner.into(), id: thread.into() });
        ModelRequest { steps, thread, ..ModelRequest::default() }
    }

    fn picky(
        refuses: &'static [&'static str],
        message: &'static str,
    ) -> (MediaRetryModel, Arc<Mutex<Vec<Vec<String>>>>) {
        let seen = Arc::new(Mutex::default());
        (MediaRetryModel::new(Arc::new(Picky { refuses, message, seen: Arc::clone(&seen) })), seen)
    }

    /// Returns the number of skipped media and whether there was an answer.
    async fn ask(model: &MediaRetryModel, values: &[&str]) -> (usize, bool) {
        ask_for(model, ("key:ann", "t"), values).await
    }

    async fn ask_for(
        model: &MediaRetryModel,
        thread: (&str, &str),
        values: &[&str],
    ) -> (usize, bool) {
        let events: Vec<_> = model.stream(conversation(thread, values)).collect().await;
        let skipped =
            events.iter().filter(|event| matches!(event, Ok(ModelEvent::Skipped(_)))).count();
        (skipped, events.iter().all(Result::is_ok))
    }

    #[tokio::test]
    async fn a_refused_medium_of_an_earlier_step_is_left_out_and_not_sent_again() {
        let (model, seen) =
            picky(&["bad"], "The provider refused the request (400): Could not process image");
        assert_eq!(ask(&model, &["bad", "good"]).await, (1, true));
        assert_eq!(ask(&model, &["bad", "good", "other"]).await, (0, true), "it was reported");
        assert_eq!(*seen.lock(), [vec!["bad", "good"], vec!["good"], vec!["good", "other"]]);
    }

    #[tokio::test]
    async fn a_refused_medium_of_this_step_alone_is_remembered() {
        let (model, seen) =
            picky(&["bad"], "The provider refused the request (400): Could not process image");
        assert_eq!(ask(&model, &["good", "bad"]).await, (2, true));
        assert_eq!(ask(&model, &["good", "bad", "other"]).await, (0, true));
        let sent = [vec!["good", "bad"], vec!["bad"], vec![], vec!["good", "other"]];
        assert_eq!(*seen.lock(), sent, "the earlier one was not the cause");
    }

    #[tokio::test]
    async fn a_medium_that_was_refused_in_one_thread_is_sent_with_the_others() {
        let (model, seen) =
            picky(&["bad"], "The provider refused the request (400): Could not process image");
        assert_eq!(ask(&model, &["good", "bad"]).await, (2, true));
        seen.lock().clear();
        for thread in [("key:bob", "t"), ("key:ann", "u")] {
            assert_eq!(ask_for(&model, thread, &["bad", "good"]).await, (1, true), "{thread:?}");
        }
        let full = vec!["bad", "good"];
        assert_eq!(*seen.lock(), [full.clone(), vec!["good"], full, vec!["good"]]);
    }

    #[tokio::test]
    async fn a_refusal_that_is_not_about_media_is_passed_on() {
        let (model, seen) =
            picky(&["bad"], "The provider refused the request (400): unknown model");
        assert_eq!(ask(&model, &["bad"]).await, (0, false));
        assert_eq!(seen.lock().len(), 1);
    }
}
