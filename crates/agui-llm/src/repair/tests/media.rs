//! Media that a provider refuses, so that no image makes a thread unusable.

use super::*;
use crate::{
    providers::wire::media,
    repair::{LadderModel, media::value_of},
    window::media_fit::each_medium,
};

const NO_IMAGE: &str = "The provider refused the request (400): Could not process image";

/// Refuses requests with one of these values.
fn refusing(
    refuses: &'static [&'static str],
    message: &'static str,
) -> (LadderModel, AskedRequests) {
    let (model, asked) = picky(move |request| {
        let values = values(request);
        let is_refused = values.iter().any(|value| refuses.contains(&value.as_str()));
        is_refused.then(|| rejected(message))
    });
    (LadderModel::new(model), asked)
}

fn values(request: &ModelRequest) -> Vec<String> {
    let (mut steps, mut values) = (request.steps.clone(), Vec::new());
    each_medium(&mut steps, |part| {
        assert!(media(part).is_ok());
        values.extend(value_of(part).map(str::to_owned));
    });
    values
}

fn seen(asked: &AskedRequests) -> Vec<Vec<String>> {
    asked.lock().iter().map(values).collect()
}

/// Returns the number of skipped media and whether there was an answer.
async fn ask(model: &LadderModel, values: &[&str]) -> (usize, bool) {
    ask_for(model, ("key:ann", "t"), values).await
}

async fn ask_for(model: &LadderModel, (owner, id): (&str, &str), values: &[&str]) -> (usize, bool) {
    let look = |value: &&str| ModelStep::User(vec![ContentPart::text("look"), image(value)]);
    let mut steps: Vec<_> = values.iter().flat_map(|value| [look(value), says("yes")]).collect();
    steps.pop();
    let request = ModelRequest { steps, thread: thread(owner, id), ..ModelRequest::default() };
    let events = play(model, request).await;
    let skipped = events.iter().filter(|event| matches!(event, Ok(ModelEvent::Skipped(_))));
    (skipped.count(), events.iter().all(Result::is_ok))
}

#[tokio::test]
async fn a_refused_medium_of_an_earlier_step_is_left_out_and_not_sent_again() {
    let (model, asked) = refusing(&["bad"], NO_IMAGE);
    assert_eq!(ask(&model, &["bad", "good"]).await, (1, true));
    assert_eq!(ask(&model, &["bad", "good", "other"]).await, (0, true), "it was reported");
    assert_eq!(seen(&asked), [vec!["bad", "good"], vec!["good"], vec!["good", "other"]]);
}

#[tokio::test]
async fn a_refused_medium_of_this_step_alone_is_remembered() {
    let (model, asked) = refusing(&["bad"], NO_IMAGE);
    assert_eq!(ask(&model, &["good", "bad"]).await, (2, true));
    assert_eq!(ask(&model, &["good", "bad", "other"]).await, (0, true));
    let sent = [vec!["good", "bad"], vec!["bad"], vec![], vec!["good", "other"]];
    assert_eq!(seen(&asked), sent, "the earlier one was not the cause");
}

#[tokio::test]
async fn a_medium_that_was_refused_in_one_thread_is_sent_with_the_others() {
    let (model, asked) = refusing(&["bad"], NO_IMAGE);
    assert_eq!(ask(&model, &["good", "bad"]).await, (2, true));
    asked.lock().clear();
    for thread in [("key:bob", "t"), ("key:ann", "u")] {
        assert_eq!(ask_for(&model, thread, &["bad", "good"]).await, (1, true), "{thread:?}");
    }
    let full = vec!["bad", "good"];
    assert_eq!(seen(&asked), [full.clone(), vec!["good"], full, vec!["good"]]);
}

#[tokio::test]
async fn a_refusal_in_unknown_words_is_mended_without_media_too() {
    let (model, asked) = refusing(&["bad"], "nope");
    assert_eq!(ask(&model, &["bad"]).await, (1, true));
    assert_eq!(seen(&asked), [vec!["bad"], vec![]]);
}
