use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use super::*;
use crate::repair::parameters::PARAMETERS;

fn refusal(body: &str, sent: &Value) -> ProviderRefusal {
    let mut refusal = ProviderRefusal::new(FailureKind::Other, body);
    refusal.sent = sent.clone();
    refusal
}

fn next(body: &str, sent: &Value, tried: &[RequestForm]) -> Option<NextForm> {
    next_form(&RequestFacts::default(), &refusal(body, sent), tried)
}

#[test]
fn a_limit_is_renamed_once_and_never_dropped() {
    let sent = |name: &str| json!({"model": "m", name: 5});
    let first = RequestForm::default();
    let renamed = next(
        "Unsupported parameter: 'max_tokens'",
        &sent("max_tokens"),
        std::slice::from_ref(&first),
    )
    .unwrap()
    .form;
    assert!(renamed.token_limit.is_some() && renamed.left_out.is_empty());
    let both = "Unsupported parameter: 'max_completion_tokens'";
    assert_eq!(next(both, &sent("max_completion_tokens"), &[first, renamed]), None);
}

#[test]
fn one_guess_in_doubt_is_enough_and_does_not_last() {
    let sent = json!({"seed": 1, "top_p": 1, "tools": [{"name": "seed"}, {"name": "top_p"}]});
    let first = RequestForm::default();
    let guess = next("unknown: seed", &sent, std::slice::from_ref(&first)).unwrap();
    assert_eq!((&*guess.form.left_out, guess.is_lasting), (&["seed"][..], false));
    assert_eq!(
        next("unknown: top_p", &sent, &[first.clone(), guess.form]),
        None,
        "no other applies"
    );
    let passing = next("top_p: only allowed when x", &json!({"top_p": 1}), &[first]).unwrap();
    assert!(!passing.is_lasting);
}

#[test]
fn unknown_words_change_first_what_loses_nothing_and_then_all_that_applies() {
    let facts = RequestFacts {
        reasoning: true,
        new_media: true,
        spread_instructions: true,
        null_content: true,
        tokens: 100,
        removable: 50,
        is_long: true,
        ..RequestFacts::default()
    };
    let refusal = refusal("nope", &json!({}));
    let mut tried = vec![RequestForm::default()];
    let mut rungs = Vec::new();
    while let Some(next) = next_form(&facts, &refusal, &tried) {
        rungs.push(next.rung);
        tried.push(next.form);
    }
    assert_eq!(rungs, ["lossless", "poorest"]);
    let lossless =
        RequestForm { system: SystemForm::Joined, empty_content: true, ..RequestForm::default() };
    let poorest = RequestForm {
        reasoning: ReasoningForm::LeftOut,
        media: MediaForm::None,
        trimmed: 50,
        ..lossless.clone()
    };
    assert_eq!(tried[1..], [lossless, poorest]);
    let short = RequestFacts { is_long: false, ..facts };
    assert_eq!(next_form(&short, &refusal, &tried[..2]).unwrap().form.trimmed, 0);
}

#[test]
fn instructions_lose_their_role_only_if_the_refusal_speaks_of_it() {
    let facts = RequestFacts { instructions: true, ..RequestFacts::default() };
    let system = |body: &str| {
        let next = next_form(&facts, &refusal(body, &json!({})), &[RequestForm::default()]);
        next.map(|next| next.form.system)
    };
    assert_eq!(system("System role not supported"), Some(SystemForm::InUser));
    for body in ["nope", "This model does not support tools", "the system is down, not supported"] {
        assert_eq!(system(body), None, "{body}");
    }
}

/// A refusal that quotes the caller's content, in one of the providers' forms.
fn refusals() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        3 => select(PARAMETERS).prop_map(|parameter| parameter.name.to_owned()),
        1 => "[a-z_.0-9\\[\\]'\"]{0,12}",
    ];
    let ways = [
        "Unsupported parameter: 'NAME' is not supported with this model.",
        "`NAME` is deprecated for this model.",
        "NAME: Extra inputs are not permitted",
        "tools.0.custom.NAME: Extra inputs are not permitted",
        r#"{"error":{"message":"Unknown parameter","param":"NAME"}}"#,
        r#"{"detail":[{"type":"extra_forbidden","loc":["body","NAME"],"msg":"Extra inputs are not permitted"}]}"#,
        "Unknown name \"NAME\" at 'generation_config': Cannot find field.",
    ];
    (name, select(ways.to_vec())).prop_map(|(name, way)| way.replace("NAME", &name))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_refusal_drops_what_is_kept_and_no_form_comes_twice(
        said in prop::collection::vec(refusals(), 1..20),
        tool in "[a-z_]{1,12}",
    ) {
        let sent: serde_json::Map<_, _> =
            PARAMETERS.iter().map(|parameter| (parameter.name.to_owned(), json!({"a": 1}))).collect();
        let mut sent = Value::Object(sent);
        sent["tools"] = json!([{"name": tool, "strict": true}]);
        let mut tried = vec![RequestForm::default()];
        for refusal in said {
            let Some(next) = next(&refusal, &sent, &tried) else { continue };
            prop_assert!(!tried.contains(&next.form), "{refusal}");
            tried.push(next.form);
        }
        for kept in PARAMETERS.iter().filter(|parameter| parameter.if_refused != IfRefused::LeaveOut) {
            prop_assert!(tried.iter().all(|form| form.has(kept.name)), "{}", kept.name);
        }
    }
}
