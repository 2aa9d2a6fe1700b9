//! The value of JSON that is still being written.

use serde_json::Value;

use agui_agent::surfaces::arguments::StringScan;

/// Returns the value of an incomplete JSON text: open strings, arrays and objects end where the
/// text ends; numbers, words and names that may be incomplete are left out. `None` without any
/// value.
pub(super) fn completed(beginning: &str) -> Option<Value> {
    // The brackets that close the open ones. They are the same at the end of `whole`.
    let mut open: Vec<char> = Vec::new();
    // The end of the longest usable beginning; true if a string is open there.
    let mut whole = (0, false);
    let mut string = StringScan::default();
    let mut expects_name = false;
    let mut is_name = false;
    for (at, char) in beginning.char_indices() {
        let end = at + char.len_utf8();
        if string.is_open || char == '"' {
            if !string.is_open {
                is_name = std::mem::take(&mut expects_name);
            }
            string.read(char);
            if !is_name && !string.is_within_char() {
                whole = (end, string.is_open);
            }
            continue;
        }
        match char {
            '{' | '[' => {
                open.push(if char == '{' { '}' } else { ']' });
                expects_name = char == '{';
                whole = (end, false);
            }
            '}' | ']' => {
                open.pop();
                expects_name = false;
                whole = (end, false);
            }
            ',' => {
                // The comma completes the value before it, also a number.
                whole = (at, false);
                expects_name = open.last() == Some(&'}');
            }
            ':' => expects_name = false,
            _ => {}
        }
    }
    let (end, is_in_string) = whole;
    let quote = if is_in_string { "\"" } else { "" };
    let closing: String = open.iter().rev().collect();
    serde_json::from_str(&format!("{}{quote}{closing}", &beginning[..end])).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_open_ends_where_the_text_ends() {
        for (beginning, value) in [
            ("", None),
            ("  ", None),
            ("tru", None),
            ("12", None),
            ("{", Some(json!({}))),
            ("{\"na", Some(json!({}))),
            ("{\"name\"", Some(json!({}))),
            ("{\"name\":", Some(json!({}))),
            ("{\"name\": \"", Some(json!({ "name": "" }))),
            ("{\"name\": \"A\\u00e", Some(json!({ "name": "A" }))),
            ("{\"name\": \"A\\ud83d", Some(json!({ "name": "A" }))),
            ("{\"name\": \"A\\ud83d\\ude00", Some(json!({ "name": "A😀" }))),
            ("{\"name\": \"A\\\\ud83d", Some(json!({ "name": "A\\ud83d" }))),
            ("{\"a\": 1", Some(json!({}))),
            ("{\"a\": 1, \"b", Some(json!({ "a": 1 }))),
            ("{\"a\": [1, 2", Some(json!({ "a": [1] }))),
            ("{\"a\": [1, {\"b\": true}, ", Some(json!({ "a": [1, { "b": true }] }))),
            ("[\"x\", \"y", Some(json!(["x", "y"]))),
        ] {
            assert_eq!(completed(beginning), value, "{beginning}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
            Just(json!("\u{1F600}\"\\\n[{,:"))
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("\\PC{0,4}", inner, 0..4).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn each_beginning_of_an_object_has_a_value(members in prop::collection::btree_map("\\PC{0,6}", values(), 0..5), is_pretty: bool) {
            let text = if is_pretty { serde_json::to_string_pretty(&members) } else { serde_json::to_string(&members) }.unwrap();
            for end in (1..text.len()).filter(|end| text.is_char_boundary(*end)) {
                prop_assert!(completed(&text[..end]).is_some_and(|value| value.is_object()), "{}", &text[..end]);
            }
            prop_assert_eq!(completed(&text), Some(json!(members)));
        }
    }
}
