//! What a client sends is read back whole, whatever the order of its members; and nothing it sends panics.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use agui_server::protocol::decode::{DecodeError, decode};
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Map, Value, json};
use support::streams::input;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..Default::default() }
}

/// The same value with the members of every object in another order.
fn reordered(value: Value, by: &mut impl FnMut(usize) -> usize) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| reordered(item, by)).collect(),
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().collect();
            let mut other = Map::new();
            while !members.is_empty() {
                let (name, value) = members.remove(by(members.len()));
                other.insert(name, reordered(value, by));
            }
            Value::Object(other)
        }
        scalar => scalar,
    }
}

/// Every place in a value, as JSON pointers, the root left out.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect(),
        Value::Object(members) => members.iter().map(|(name, member)| (name.clone(), member)).collect(),
        _ => return,
    };
    for (name, member) in members {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        places(member, &place, found);
        found.push(place);
    }
}

/// A JSON pointer as the server writes paths: `/messages/3/toolCallId` as `messages[3].toolCallId`.
fn path(pointer: &str) -> String {
    pointer[1..].split('/').enumerate().fold(String::new(), |path, (i, step)| match step.parse::<usize>() {
        Ok(index) => format!("{path}[{index}]"),
        Err(_) if i == 0 => step.to_owned(),
        Err(_) => format!("{path}.{step}"),
    })
}

fn misfit() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(-1.5),
        json!(""),
        json!("user"),
        json!([]),
        json!([null, {}]),
        json!({}),
        json!({"role": "tool", "type": "text"}),
    ])
}

proptest! {
    #![proptest_config(config(1_000))]

    #[test]
    fn what_is_written_is_read_back_whole_in_any_order(input in input(), order in vec(any::<Index>(), 1..40)) {
        let written = serde_json::to_value(&input).unwrap();
        let mut turns = order.iter().cycle();
        let shuffled = reordered(written, &mut |len| turns.next().unwrap().index(len));
        let read = decode(shuffled.to_string().as_bytes()).unwrap();
        prop_assert_eq!(read.input, input);
        prop_assert!(read.ignored.is_empty(), "{:?}", read.ignored);
    }

    #[test]
    fn a_value_in_the_wrong_place_is_refused_by_name_or_read(
        input in input(),
        place in any::<Index>(),
        value in misfit(),
    ) {
        let mut body = serde_json::to_value(&input).unwrap();
        let mut all = Vec::new();
        places(&body, "", &mut all);
        let place = place.get(&all);
        *body.pointer_mut(place).unwrap() = value;
        match decode(body.to_string().as_bytes()) {
            // Nothing half-read gets through: what was read is an input like any other.
            Ok(read) => {
                let again = decode(serde_json::to_string(&read.input).unwrap().as_bytes()).unwrap();
                prop_assert_eq!(again.input, read.input);
            }
            Err(DecodeError::Malformed { path: fault, problem }) => {
                // At the place, inside of it, or beside it: another `role` wants other members.
                let (around, _) = place.rsplit_once('/').unwrap();
                let near = if around.is_empty() { path(place) } else { path(around) };
                prop_assert!(fault.starts_with(&near), "{place} changed, {fault} found at fault: {problem}");
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn damaged_bytes_are_refused_or_read_and_never_panic(
        input in input(),
        damage in vec((any::<Index>(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let mut body = serde_json::to_vec(&input).unwrap();
        for (at, byte, how) in damage {
            let at = at.index(body.len());
            match how {
                0 => body[at] = byte,
                1 => body.insert(at, byte),
                _ => body.truncate(at.max(1)),
            }
        }
        if let Err(error) = decode(&body) {
            // An answer to a client, and a log line: short, whatever was sent.
            prop_assert!(error.to_string().len() < 500, "{error}");
        }
    }

    #[test]
    fn any_bytes_at_all_never_panic(body in vec(any::<u8>(), 0..200)) {
        let _ = decode(&body);
    }
}
