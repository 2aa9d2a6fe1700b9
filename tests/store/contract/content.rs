//! What is kept of a thread.

use agui_server::{
    protocol::{Interrupt, Message},
    store::{Lease, ThreadContent},
};
use serde_json::{Value, json};

use crate::backends::{NOW, Shared, elsewhere, ended_at, finish, is_lost, lease, said};

fn messages() -> Vec<Message> {
    let of_every_role = json!([
        { "id": "1", "role": "developer", "content": "d", "name": "n" },
        { "id": "2", "role": "system", "content": "" },
        { "id": "3", "role": "user", "content": "a \u{0} and \n and \u{2028} and 🦀 and '; DROP TABLE" },
        { "id": "4", "role": "user", "content": [{ "type": "text", "text": "part" }], "metadata": { "a": [1, 2.5, null] } },
        { "id": "5", "role": "assistant", "content": "x", "toolCalls": [
            { "id": "c", "type": "function", "function": { "name": "f", "arguments": "{\"not\": json" } } ] },
        { "id": "6", "role": "assistant", "toolCalls": [] },
        { "id": "7", "role": "tool", "content": "r", "toolCallId": "c", "error": "e" },
        { "id": "8", "role": "activity", "activityType": "plan", "content": { "z": 1, "a": deep(120) } },
        { "id": "9", "role": "reasoning", "content": "hm", "encryptedValue": "x", "subagentRunId": "s" },
    ]);
    // A parser of text would find it too deep.
    serde_json::from_value(of_every_role).unwrap()
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!("bottom"), |inner, _| json!([inner]))
}

pub(crate) async fn it_comes_back_as_it_was(store: Shared) {
    let lease = lease(&store, "t", "r").await;
    let interrupt = Interrupt { message: Some("may\0 I?".to_owned()), ..Interrupt::new("tool_call") };
    let states = [
        None,
        Some(Value::Null),
        Some(json!({ "z": [0.1, 1e300, -0.0, u64::MAX, i64::MIN], "a": "\u{0}", "": {} })),
        Some(deep(200)),
        Some(json!("x".repeat(2_000_000))),
    ];
    for state in states {
        let content = ThreadContent { messages: messages(), state, interrupts: vec![interrupt.clone(); 2] };
        store.save(&lease, &content).await.unwrap();
        assert!(store.thread(&"t".into()).await.unwrap().unwrap().content == content);
    }
    store.save(&lease, &ThreadContent::default()).await.unwrap();
    assert_eq!(store.thread(&"t".into()).await.unwrap().unwrap().content, ThreadContent::default());
}

pub(crate) async fn a_save_is_not_a_change_of_the_thread(store: Shared) {
    let lease = lease(&store, "t", "r").await;
    store.save(&lease, &said("one")).await.unwrap();
    store.save(&lease, &said("two")).await.unwrap();
    let thread = store.thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.version, thread.updated_at, thread.content), (2, NOW, said("two")));
    store.finish(&lease, Some(&said("three")), None, &ended_at(NOW + 5)).await.unwrap();
    let thread = store.thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.version, thread.updated_at, thread.content), (3, NOW + 5, said("three")));
}

pub(crate) async fn only_the_lease_may_save(store: Shared) {
    let first = lease(&store, "t", "r").await;
    let wrong = Lease { token: first.token + 1, ..first.clone() };
    assert!(is_lost(store.save(&wrong, &said("x")).await));
    let elsewhere = elsewhere(&first, "u");
    assert!(is_lost(store.save(&elsewhere, &said("x")).await));
    finish(&store, &first, NOW).await;
    assert!(is_lost(store.save(&first, &said("x")).await));
    let _second = lease(&store, "t", "r").await;
    assert!(is_lost(store.save(&first, &said("x")).await));
    let thread = store.thread(&"t".into()).await.unwrap().unwrap();
    assert_eq!((thread.content, thread.version), (ThreadContent::default(), 0));
    assert!(store.thread(&"u".into()).await.unwrap().is_none());
}
