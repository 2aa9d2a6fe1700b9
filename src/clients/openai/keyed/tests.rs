use futures::stream;

use super::*;
use agui_protocol::event::{RunFinished, RunOutcome};

fn key(owner: &str, key: impl ToString) -> OwnedKey {
    (owner.into(), key.to_string())
}

/// Returns the use of a key, or the code of the refusal.
fn enter(keys: &KeyedAnswers, key: &OwnedKey) -> Result<KeyUse, ApiError> {
    keys.enter(key, [0; 32], AnswerHead::new("a"))
}

/// Enters a new key, and completes its answer.
async fn complete(keys: &KeyedAnswers, key: &OwnedKey) {
    let Ok(KeyUse::New(answer)) = enter(keys, key) else { panic!("{key:?} is known") };
    let end = RunFinished::new("t".into(), "r".into(), RunOutcome::success());
    let events = stream::iter([Ok(Some(Event::from(end)))]);
    keys.make(key, &answer, CompletionReader::default(), events).await;
}

fn is_known(keys: &KeyedAnswers, key: &OwnedKey) -> bool {
    matches!(enter(keys, key), Ok(KeyUse::Known(_)))
}

#[tokio::test(start_paused = true)]
async fn a_key_holds_for_ten_minutes_after_its_answer_and_while_that_is_made() {
    let keys = KeyedAnswers::new();
    let (ended, running) = (key("ann", "ended"), key("ann", "running"));
    assert!(matches!(enter(&keys, &running), Ok(KeyUse::New(_))));
    complete(&keys, &ended).await;
    tokio::time::advance(KEY_LIFETIME - Duration::from_secs(1)).await;
    assert!(is_known(&keys, &ended));
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(matches!(enter(&keys, &ended), Ok(KeyUse::New(_))));
    assert!(is_known(&keys, &running));
}

#[tokio::test(start_paused = true)]
async fn the_newest_keys_of_a_principal_hold_and_those_of_others_stay() {
    let keys = KeyedAnswers::new();
    let other = key("bob", "k");
    complete(&keys, &other).await;
    for number in 0..=MAX_KEYS_OF_OWNER {
        complete(&keys, &key("ann", number)).await;
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    assert!(!is_known(&keys, &key("ann", 0)), "it made room for the last one");
    assert!(is_known(&keys, &key("ann", MAX_KEYS_OF_OWNER)));
    assert!(is_known(&keys, &other));
}

#[tokio::test]
async fn keys_of_runs_that_are_running_make_no_room() {
    let keys = KeyedAnswers::new();
    for number in 0..MAX_KEYS_OF_OWNER {
        assert!(enter(&keys, &key("ann", number)).is_ok());
    }
    let refused = enter(&keys, &key("ann", "more"));
    assert!(matches!(refused, Err(ApiError::TooManyIdempotencyKeys)));
    for (owner, number) in (0..MAX_KEYS).map(|number| (number / MAX_KEYS_OF_OWNER, number)) {
        let _ = enter(&keys, &key(&format!("owner-{owner}"), number));
    }
    assert_eq!(keys.entries.lock().len(), MAX_KEYS);
    keys.forget(&key("ann", 0));
    assert!(enter(&keys, &key("ann", "more")).is_ok());
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_as_an_error() {
    use agui_protocol::event::TextMessageContent;
    let (keys, key) = (KeyedAnswers::new(), key("ann", "k"));
    let Ok(KeyUse::New(answer)) = enter(&keys, &key) else { panic!("the key is known") };
    let piece = Event::from(TextMessageContent::new("m", "x".repeat(1 << 20)));
    let endless = stream::repeat_with(move || Ok(Some(piece.clone())));
    keys.make(&key, &answer, CompletionReader::default(), endless).await;
    let response = answer.document().await;
    assert_eq!(response.status(), 502);
    assert!(matches!(enter(&keys, &key), Err(ApiError::AnswerNotKept)));
}
