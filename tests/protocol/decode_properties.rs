//! Properties of the decoder: it reads valid input in any member order, and no input makes it panic.

use agui_protocol::decode::{DecodeError, decode};
use proptest::{collection::vec, prelude::*, sample::Index};
use serde_json::{Map, Value, json};

use crate::support::streams::input;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..Default::default() }
}

/// Returns the value with the members of all objects in another order.
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

/// Collects the JSON pointers of all values but the root.
fn collect_pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(i, item)| (i.to_string(), item)).collect()
        }
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), member)).collect()
        }
        _ => return,
    };
    for (name, member) in members {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        collect_pointers(member, &place, found);
        found.push(place);
    }
}

/// Converts a JSON pointer into the decoder's form: `/messages/3/toolCallId` into `messages[3].toolCallId`.
fn path(pointer: &str) -> String {
    pointer[1..].split('/').enumerate().fold(String::new(), |path, (i, step)| {
        match step.parse::<usize>() {
            Ok(index) => format!("{path}[{index}]"),
            Err(_) if i == 0 => step.to_owned(),
            Err(_) => format!("{path}.{step}"),
        }
    })
}

fn wrong_value() -> impl Strategy<Value = Value> {
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
    fn valid_input_is_decoded_in_any_member_order(input in input(), order in vec(any::<Index>(), 1..40)) {
        let written = serde_json::to_value(&input).unwrap();
        let mut turns = order.iter().cycle();
        let shuffled = reordered(written, &mut |len| turns.next().unwrap().index(len));
        let read = decode(shuffled.to_string().as_bytes()).unwrap();
        prop_assert_eq!(read.input, input);
        prop_assert!(read.ignored.is_empty(), "{:?}", read.ignored);
    }

    #[test]
    fn a_wrong_value_is_refused_near_its_path_or_is_valid_there(
        input in input(),
        place in any::<Index>(),
        value in wrong_value(),
    ) {
        let mut body = serde_json::to_value(&input).unwrap();
        let mut all = Vec::new();
        collect_pointers(&body, "", &mut all);
        let place = place.get(&all);
        *body.pointer_mut(place).unwrap() = value;
        match decode(body.to_string().as_bytes()) {
            // The result is a complete input: it can be written and decoded again.
            Ok(read) => {
                let again = decode(serde_json::to_string(&read.input).unwrap().as_bytes()).unwrap();
                prop_assert_eq!(again.input, read.input);
            }
            Err(DecodeError::Malformed { path: fault, problem }) => {
                // The error is at the value, inside of it or beside it: another `role` requires other members.
                let (around, _) = place.rsplit_once('/').unwrap();
                let near = if around.is_empty() { path(place) } else { path(around) };
                prop_assert!(fault.starts_with(&near), "{place} was changed, the error is at {fault}: {problem}");
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn damaged_input_never_panics_and_its_errors_are_short(
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
            // The text is sent to the client and written to the log.
            prop_assert!(error.to_string().len() < 500, "{error}");
        }
    }

    #[test]
    fn random_bytes_never_panic(body in vec(any::<u8>(), 0..200)) {
        let _ = decode(&body);
    }
}
