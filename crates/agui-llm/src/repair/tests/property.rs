//! Any refusal, in any words, of a request that a poorer form would mend.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::form::{MediaForm, ReasoningForm};

/// What a provider does not take.
#[derive(Debug, Clone, Copy)]
struct Taste {
    reasoning: bool,
    media: bool,
    /// The largest number of steps.
    steps: usize,
}

fn request(owner: &str) -> ModelRequest {
    let long = "a long word ".repeat(80);
    let pair = |n: usize| {
        let user = vec![ContentPart::text(long.clone()), image(&format!("{n}"))];
        [
            ModelStep::User(user),
            ModelStep::Assistant(vec![thought(), Block::Text("yes".to_owned())]),
        ]
    };
    let steps = (0..20).flat_map(pair);
    let last = ModelStep::User(vec![ContentPart::text("and?"), image("new")]);
    let steps = steps.chain([last]).collect();
    ModelRequest { steps, thread: thread(owner, "t"), ..ModelRequest::default() }
}

fn takes(taste: Taste, request: &ModelRequest) -> bool {
    let has_images = request.steps.iter().any(|step| match step {
        ModelStep::User(parts) => parts.iter().any(|part| matches!(part, ContentPart::Image(_))),
        _ => false,
    });
    (taste.reasoning || request.form.reasoning == ReasoningForm::LeftOut)
        && (taste.media || !has_images)
        && request.steps.len() <= taste.steps
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,60}",
        Just("Bad Request".to_owned()),
        Just("The encrypted content could not be verified.".to_owned()),
        Just("this model has no eyes for an image".to_owned()),
        Just("prompt token count of 90 exceeds the limit of 80".to_owned()),
        Just("System role not supported".to_owned()),
        Just("reasoning_content must be passed back".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn it_ends_in_an_answer_or_in_one_failed_run_and_a_next_message_that_is_answered(
        (reasoning, media, is_short) in any::<(bool, bool, bool)>(),
        said in words(),
        is_too_long in any::<bool>(),
    ) {
        let taste = Taste { reasoning, media, steps: if is_short { 9 } else { 99 } };
        // A refusal that says that the request is too long does not come of other reasons.
        let code = if is_too_long && is_short && reasoning { "context_too_long" } else { "model_rejected" };
        let (model, asked) = picky(move |request| {
            (!takes(taste, request)).then(|| ModelError::new(code, said.clone()))
        });
        let model = LadderModel::new(model);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let is_first = is_answered(&model, request("key:ann")).await;
            let seen: Vec<_> = asked.lock().drain(..).collect();
            prop_assert!(seen.len() <= 8, "{}", seen.len());
            let shapes: HashSet<_> = seen.iter().map(|it| format!("{:?}{:?}", it.form, it.steps)).collect();
            prop_assert_eq!(shapes.len(), seen.len(), "a form was sent twice");
            for sent in &seen {
                prop_assert!(sent.tools == request("key:ann").tools && sent.form.left_out.is_empty());
            }
            prop_assert!(is_first || is_answered(&model, request("key:ann")).await);
            // Another owner gets the full form.
            asked.lock().clear();
            is_answered(&model, request("key:bob")).await;
            let first = asked.lock()[0].clone();
            prop_assert_eq!((first.form, first.steps.len()), (RequestForm::default(), 41));
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn after_a_guess_the_next_message_is_answered_at_once() {
    let taste = Taste { reasoning: false, media: true, steps: 99 };
    let (model, asked) =
        picky(move |request| (!takes(taste, request)).then(|| rejected("signature")));
    let model = LadderModel::new(model);
    assert!(is_answered(&model, request("key:ann")).await);
    assert_eq!(forms(&asked).len(), 2);
    assert!(is_answered(&model, request("key:ann")).await);
    let [form] = &forms(&asked)[..] else { panic!() };
    assert_eq!((form.reasoning, form.media), (ReasoningForm::LeftOut, MediaForm::All));
}

#[tokio::test(start_paused = true)]
async fn what_no_form_mends_is_not_tried_again_for_a_minute() {
    let (model, asked) = picky(|_| Some(rejected("nope")));
    let model = LadderModel::new(model);
    let mut counts = Vec::new();
    for wait in [0, 30, 60] {
        tokio::time::advance(std::time::Duration::from_secs(wait)).await;
        assert!(!is_answered(&model, request("key:ann")).await);
        counts.push(forms(&asked).len());
    }
    assert_eq!(counts, [2, 1, 2]);
}
