//! A model whose requests are kept within its window.

use std::sync::Arc;

use async_stream::stream;
use futures::StreamExt as _;

use super::{
    Beginning, estimate,
    model_window::{Asked, ModelWindow},
    options::{CONTEXT_TOO_LONG, WindowOptions, WindowPolicy},
    trim,
};
use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream, delegate_model};

/// The number of shorter requests after the provider refused one as too long.
const MAX_RETRIES: usize = 3;
/// The share of a refused request's tokens that the next one has.
const SHARE_AFTER_REFUSAL: f64 = 0.7;
/// More than the excess is left out, in whole quarters of the limit. So the next requests leave out
/// the same part, and their beginning stays in the provider's cache.
const PARTS_OF_LIMIT: u64 = 4;

/// Refuses or shortens requests that do not fit, by the window's policy.
pub(crate) struct FittedModel {
    pub(super) model: Arc<dyn Model>,
    pub(super) window: Arc<ModelWindow>,
}

impl FittedModel {
    pub(crate) fn new(model: Arc<dyn Model>, options: WindowOptions) -> Self {
        Self { model, window: Arc::new(ModelWindow::new(options)) }
    }
}

impl Model for FittedModel {
    delegate_model!(model);

    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        let (model, window) = (self.model.clone(), self.window.clone());
        let stream = stream! {
            let (asked, trace) = (Asked::new(request.thread.as_ref(), &request, &*model), request.trace.clone());
            if let Err(error) = fit(&mut request, &asked, &window) {
                yield Err(error);
                return;
            }
            let mut retries = if window.options.policy == WindowPolicy::Fail { 0 } else { MAX_RETRIES };
            loop {
                let estimate = estimate::request_tokens(&request);
                // Later requests of the thread use what is learned, so a guess must not be learned.
                let mut may_count = !estimate::is_rough(&request);
                let may_learn_refusal = may_count;
                let shorter = (retries > 0).then(|| request.clone());
                let mut answer = model.stream(std::mem::take(&mut request));
                let Beginning { skipped, first } = Beginning::read(&mut answer).await;
                let error = match first {
                    Some(Err(error)) if error.code() == CONTEXT_TOO_LONG => error,
                    mut item => {
                        for attachment in skipped {
                            yield Ok(ModelEvent::Skipped(attachment));
                        }
                        while let Some(event) = item {
                            // The first count is that of this request. Later ones can be sums with continued requests.
                            if may_count
                                && let Ok(ModelEvent::Usage(usage)) = &event
                                && let Some(tokens) = usage.input_tokens
                            {
                                window.counted(&asked, estimate, tokens);
                                may_count = false;
                            }
                            yield event;
                            item = answer.next().await;
                        }
                        return;
                    }
                };
                if may_learn_refusal {
                    window.refused(&asked, estimate);
                }
                let excess = estimate - (estimate as f64 * SHARE_AFTER_REFUSAL) as u64;
                let shorter = shorter.and_then(|mut request| trim::trim(&mut request.steps, excess).then_some(request));
                let Some(shorter) = shorter.filter(|_| trace.count_changed_request()) else {
                    yield Err(error);
                    return;
                };
                (request, retries) = (shorter, retries - 1);
                tracing::info!(model = asked.model, estimate, "the provider refused a request as too long; trying a shorter one");
            }
        };
        stream.boxed()
    }
}

fn fit(request: &mut ModelRequest, asked: &Asked, window: &ModelWindow) -> Result<(), ModelError> {
    let estimate = estimate::request_tokens(request);
    if window.options.policy == WindowPolicy::Fail {
        let Some(tokens) = window.is_surely_exceeded(asked, estimate) else { return Ok(()) };
        let about = window.corrected(asked, estimate);
        let message = format!(
            "The conversation is too long for the model: about {about} tokens, of at most {tokens}; start a new one"
        );
        return Err(ModelError::new(CONTEXT_TOO_LONG, message));
    }
    let Some(limit) = window.limit(asked).filter(|limit| estimate > *limit) else { return Ok(()) };
    let part = (limit / PARTS_OF_LIMIT).max(1);
    let excess = (estimate - limit).div_ceil(part) * part;
    if trim::trim(&mut request.steps, excess) {
        tracing::info!(
            model = asked.model,
            estimate,
            limit,
            "left out the beginning of a conversation that is too long"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::{StreamExt as _, stream};
    use serde_json::json;

    use super::*;
    use crate::model::{Block, ModelStep, SkippedAttachment, StopReason};
    use agui_protocol::{ContentPart, TokenUsage};
    use agui_store::ThreadKey;

    /// Refuses requests with more steps than it reads. Counts two tokens for each estimated one, and then three times as many.
    struct Narrow {
        max_steps: usize,
        requests: Arc<Mutex<Vec<ModelRequest>>>,
    }

    impl Model for Narrow {
        fn provider(&self) -> &str {
            "narrow"
        }

        fn name(&self) -> &str {
            "m"
        }

        fn warnings(&self) -> Vec<String> {
            vec!["`top_k`: m ignores it".to_owned()]
        }

        fn stream(&self, request: ModelRequest) -> ModelStream {
            let skipped = Ok(ModelEvent::Skipped(SkippedAttachment::default()));
            let counted = 2 * estimate::request_tokens(&request);
            let usage = |requests: u64| {
                let input_tokens = Some(requests * counted);
                Ok(ModelEvent::Usage(TokenUsage { input_tokens, ..TokenUsage::default() }))
            };
            let fits = request.steps.len() <= self.max_steps;
            self.requests.lock().unwrap().push(request);
            stream::iter(match fits {
                true => vec![skipped, usage(1), usage(3), Ok(ModelEvent::Stop(StopReason::Done))],
                false => vec![skipped, Err(ModelError::new(CONTEXT_TOO_LONG, "too long"))],
            })
            .boxed()
        }
    }

    /// A conversation of pairs with about 250 tokens each, which a user ends.
    fn conversation(pairs: usize) -> ModelRequest {
        let user = || ModelStep::User(vec![ContentPart::text("a long word ".repeat(80))]);
        let answer = || ModelStep::Assistant(vec![Block::Text("yes".to_owned())]);
        let steps = (0..pairs).flat_map(|_| [user(), answer()]).chain([user()]).collect();
        let thread = Some(ThreadKey { owner: "key:ann".into(), id: "t".into() });
        ModelRequest { steps, thread, ..ModelRequest::default() }
    }

    fn asked(model: &FittedModel) -> Asked {
        let request = conversation(0);
        Asked::new(request.thread.as_ref(), &request, &*model.model)
    }

    async fn play(
        model: &FittedModel,
        request: ModelRequest,
    ) -> Vec<Result<ModelEvent, ModelError>> {
        model.stream(request).collect().await
    }

    fn narrow(
        max_steps: usize,
        options: WindowOptions,
    ) -> (FittedModel, Arc<Mutex<Vec<ModelRequest>>>) {
        let requests = Arc::new(Mutex::default());
        let model = Narrow { max_steps, requests: Arc::clone(&requests) };
        (FittedModel::new(Arc::new(model), options), requests)
    }

    fn trim_at(window: Option<u64>) -> WindowOptions {
        WindowOptions {
            window,
            policy: WindowPolicy::Trim,
            max_tokens: Some(10),
            ..WindowOptions::default()
        }
    }

    fn lengths(requests: &Mutex<Vec<ModelRequest>>) -> Vec<usize> {
        requests.lock().unwrap().iter().map(|request| request.steps.len()).collect()
    }

    #[test]
    fn the_warnings_of_a_model_are_those_of_the_model_within_its_window() {
        assert_eq!(narrow(9, trim_at(None)).0.warnings(), ["`top_k`: m ignores it"]);
    }

    #[tokio::test]
    async fn a_refused_request_is_shortened_and_what_was_skipped_is_told_once() {
        let (model, requests) = narrow(9, trim_at(None));
        let events = play(&model, conversation(7)).await;
        assert_eq!(lengths(&requests), [15, 9]);
        let skipped =
            events.iter().filter(|event| matches!(event, Ok(ModelEvent::Skipped(_)))).count();
        assert_eq!((skipped, events.len()), (1, 4), "{events:?}");
    }

    #[tokio::test]
    async fn the_number_of_shorter_requests_is_bounded_and_then_the_refusal_is_passed_on() {
        let (model, requests) = narrow(0, trim_at(None));
        let events = play(&model, conversation(30)).await;
        let lengths = lengths(&requests);
        assert_eq!(lengths.len(), 1 + MAX_RETRIES);
        assert!(lengths.is_sorted_by(|longer, shorter| longer > shorter), "{lengths:?}");
        let [Err(error)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(error.code(), CONTEXT_TOO_LONG);
        let (model, requests) = narrow(0, trim_at(None));
        play(&model, conversation(0)).await;
        assert_eq!(requests.lock().unwrap().len(), 1, "nothing can be left out");
    }

    #[tokio::test]
    async fn a_request_that_was_sent_in_as_many_forms_as_it_may_be_is_not_shortened() {
        let (model, requests) = narrow(0, trim_at(None));
        let request = conversation(30);
        assert_eq!((0..9).filter(|_| request.trace.count_changed_request()).count(), 7);
        play(&model, request).await;
        assert_eq!(requests.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_refusal_shortens_no_request_of_another_thread() {
        let (model, requests) = narrow(9, trim_at(None));
        play(&model, conversation(7)).await;
        requests.lock().unwrap().clear();
        for (owner, id) in [("key:bob", "t"), ("key:ann", "u")] {
            let thread = Some(ThreadKey { owner: owner.into(), id: id.into() });
            play(&model, ModelRequest { thread, ..conversation(7) }).await;
        }
        play(&model, conversation(7)).await;
        let lengths = lengths(&requests);
        assert_eq!(lengths[..4], [15, 9, 15, 9]);
        assert!(lengths[4] < 15, "{lengths:?}");
    }

    #[tokio::test]
    async fn nothing_is_learned_from_a_request_with_media() {
        let (model, requests) = narrow(3, trim_at(None));
        let mut with_image = conversation(3);
        let image = json!({ "type": "image", "source": { "type": "url", "value": "https://example.com/a.png" } });
        with_image.steps[6] = ModelStep::User(vec![serde_json::from_value(image).unwrap()]);
        play(&model, with_image).await;
        requests.lock().unwrap().clear();
        play(&model, conversation(1)).await;
        assert_eq!((lengths(&requests), model.window.limit(&asked(&model))), (vec![3], None));
    }

    #[tokio::test]
    async fn of_the_counts_of_an_answer_the_first_is_learned() {
        let (model, _) = narrow(9, WindowOptions { window: Some(10_000), ..trim_at(None) });
        let request = conversation(4);
        let estimate = estimate::request_tokens(&request);
        assert!(estimate > 1_000, "{estimate}");
        // `Narrow` counts twice the estimate, and then what a paused answer would sum up.
        play(&model, request).await;
        assert_eq!(model.window.corrected(&asked(&model), 100), 200);
    }

    #[tokio::test]
    async fn requests_are_cut_at_the_same_place_for_a_while_and_counts_correct_the_estimate() {
        let (model, requests) = narrow(100, trim_at(Some(4_000)));
        for pairs in [7, 8, 9, 10] {
            play(&model, conversation(pairs)).await;
        }
        // The first count says that the tokens are twice the estimate, so 7 pairs fit. A quarter of the limit is less than
        // 3 pairs.
        let firsts: Vec<_> =
            lengths(&requests).iter().zip([15, 17, 19, 21]).map(|(kept, all)| all - kept).collect();
        assert_eq!(firsts, [0, 6, 6, 10], "{firsts:?}");
    }
}
