//! Conversations that a provider refuses as too long.

use super::*;
use crate::{
    model::SkippedAttachment,
    window::{WindowPolicy, estimate},
};
use agui_protocol::TokenUsage;

/// Refuses requests with more steps than it reads. Counts two tokens for each estimated one, and then three times as many.
struct Narrow {
    max_steps: usize,
    requests: AskedRequests,
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
        self.requests.lock().push(request);
        stream::iter(match fits {
            true => vec![skipped, usage(1), usage(3), Ok(ModelEvent::Stop(StopReason::Done))],
            false => vec![skipped, Err(ModelError::new("context_too_long", "too long"))],
        })
        .boxed()
    }
}

/// A conversation of pairs with about 250 tokens each, which a user ends.
fn conversation(pairs: usize) -> ModelRequest {
    let user = || ModelStep::User(vec![ContentPart::text("a long word ".repeat(80))]);
    let steps = (0..pairs).flat_map(|_| [user(), says("yes")]).chain([user()]).collect();
    ModelRequest { steps, thread: thread("key:ann", "t"), ..ModelRequest::default() }
}

fn narrow(max_steps: usize, options: WindowOptions) -> (FittedModel, AskedRequests) {
    let requests = AskedRequests::default();
    let model = Narrow { max_steps, requests: requests.clone() };
    (fitted(Arc::new(model), options), requests)
}

fn trim_at(window: Option<u64>) -> WindowOptions {
    WindowOptions { window, max_tokens: Some(10), ..WindowOptions::default() }
}

fn lengths(requests: &AskedRequests) -> Vec<usize> {
    requests.lock().iter().map(|request| request.steps.len()).collect()
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
    let count = |is: fn(&ModelEvent) -> bool| {
        events.iter().filter(|event| event.as_ref().is_ok_and(is)).count()
    };
    assert_eq!(count(|event| matches!(event, ModelEvent::Skipped(_))), 1, "{events:?}");
    assert_eq!(count(|event| *event == ModelEvent::Trimmed), 1, "{events:?}");
    assert_eq!(events.len(), 5, "{events:?}");
}

#[tokio::test]
async fn the_number_of_shorter_requests_is_bounded_and_then_the_refusal_is_passed_on() {
    let (model, requests) = narrow(0, trim_at(None));
    let events = play(&model, conversation(30)).await;
    let lengths_of_all = lengths(&requests);
    assert_eq!(lengths_of_all.len(), 4);
    assert!(lengths_of_all.is_sorted_by(|longer, shorter| longer > shorter), "{lengths_of_all:?}");
    assert_eq!(lengths_of_all[3], 1, "the last has only the user's message");
    let error = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.code(), "context_too_long");
    let (model, requests) = narrow(0, trim_at(None));
    play(&model, conversation(0)).await;
    assert_eq!(requests.lock().len(), 1, "nothing can be left out");
}

#[tokio::test]
async fn a_request_that_was_sent_in_as_many_forms_as_it_may_be_is_not_shortened() {
    let (model, requests) = narrow(0, trim_at(None));
    let request = conversation(30);
    assert_eq!((0..9).filter(|_| request.trace.count_changed_request()).count(), 7);
    play(&model, request).await;
    assert_eq!(requests.lock().len(), 1);
}

#[tokio::test]
async fn with_the_policy_fail_nothing_is_left_out_whatever_the_words_are() {
    for message in ["too long", "nope"] {
        let code = if message == "nope" { "model_rejected" } else { "context_too_long" };
        let (model, asked) = picky(move |_| Some(ModelError::new(code, message)));
        let options = WindowOptions { policy: WindowPolicy::Fail, ..trim_at(None) };
        let events = play(&fitted(model, options), conversation(60)).await;
        assert_eq!(events.last().unwrap().as_ref().unwrap_err().code(), code);
        assert_eq!(lengths(&asked), [121]);
    }
}

#[tokio::test]
async fn a_refusal_shortens_no_request_of_another_thread() {
    let (model, requests) = narrow(9, trim_at(None));
    play(&model, conversation(7)).await;
    requests.lock().clear();
    for (owner, id) in [("key:bob", "t"), ("key:ann", "u")] {
        play(&model, ModelRequest { thread: thread(owner, id), ..conversation(7) }).await;
    }
    play(&model, conversation(7)).await;
    let lengths = lengths(&requests);
    assert_eq!(lengths[..4], [15, 9, 15, 9]);
    assert!(lengths[4] < 15, "{lengths:?}");
}

#[tokio::test]
async fn a_model_without_a_window_is_asked_in_the_length_that_was_answered() {
    let requests = AskedRequests::default();
    let model = LadderModel::new(Arc::new(Narrow { max_steps: 9, requests: requests.clone() }));
    for _ in 0..2 {
        let events = play(&model, conversation(7)).await;
        assert!(events.iter().flatten().any(|event| *event == ModelEvent::Trimmed), "{events:?}");
    }
    let lengths = lengths(&requests);
    assert_eq!(lengths[..2], [15, 9]);
    assert!(lengths[2] < 15, "{lengths:?}");
}

#[tokio::test]
async fn nothing_is_learned_from_a_request_with_media() {
    let (model, requests) = narrow(3, trim_at(None));
    let mut with_image = conversation(3);
    with_image.steps[6] = ModelStep::User(vec![image("a")]);
    play(&model, with_image).await;
    requests.lock().clear();
    play(&model, conversation(1)).await;
    assert_eq!(lengths(&requests), [3]);
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
