//! Reads the JSON arguments of a tool call while they stream in.
//!
//! The reader returns the members of the object in pieces: text of open strings, items of open
//! arrays, and closed values. Each byte is read once, and at most one member is kept, so time is
//! linear and memory bounded by [`MAX_ARGUMENTS_BYTES`].

/// The longest arguments that are read. The rest of longer arguments is ignored.
const MAX_ARGUMENTS_BYTES: usize = 1024 * 1024;

/// A piece of a member's value.
#[derive(Debug, PartialEq)]
pub enum ArgumentPart<'a> {
    /// The next piece of an open string, decoded.
    Text(&'a str),
    /// The next piece of an open object or array, as JSON.
    Json(&'a str),
    /// A closed item of an array, as JSON.
    Item(&'a str),
    /// The closed value, as JSON.
    Closed(&'a str),
}

/// The next element to read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Place {
    #[default]
    Start,
    BeforeName,
    Name,
    BeforeColon,
    BeforeValue,
    Value,
    AfterValue,
    End,
    /// The text is not a JSON object, or too long. The rest is ignored.
    Broken,
}

/// Follows a JSON string, its quotes included.
#[derive(Debug, Default)]
pub struct StringScan {
    pub is_open: bool,
    /// True if the last character is the backslash of an escape sequence.
    is_escaped: bool,
    /// The number of hexadecimal digits that an escape sequence lacks.
    digits: u8,
    /// The UTF-16 code unit of the previous escape sequence; 0 after another character.
    unit: u16,
}

impl StringScan {
    pub fn read(&mut self, char: char) {
        if self.digits > 0 {
            self.digits -= 1;
            self.unit = self.unit << 4 | char.to_digit(16).unwrap_or_default() as u16;
            return;
        }
        match (self.is_escaped, char) {
            (true, 'u') => self.digits = 4,
            (false, '"') => self.is_open = !self.is_open,
            _ => {}
        }
        (self.is_escaped, self.unit) = (!self.is_escaped && char == '\\', 0);
    }

    /// Returns whether the text ends within an escape sequence, or with the first half of a
    /// surrogate pair.
    pub fn is_within_char(&self) -> bool {
        self.is_escaped || self.digits > 0 || (0xD800..0xDC00).contains(&self.unit)
    }
}

#[derive(Debug, Default)]
pub struct ArgumentsReader {
    place: Place,
    name: String,
    /// The JSON text of the open name or value.
    raw: String,
    /// The part of `raw` that was returned as text or JSON.
    sent: usize,
    /// The part of `raw` that ends with a whole character of a string.
    whole: usize,
    string: StringScan,
    depth: usize,
    /// The beginning of the open item in `raw`.
    item: usize,
    bytes: usize,
}

impl ArgumentsReader {
    /// Reads the next piece, and calls `each` with names of members and pieces of their values.
    pub fn push(&mut self, piece: &str, each: &mut impl FnMut(&str, ArgumentPart<'_>)) {
        self.bytes += piece.len();
        if self.bytes > MAX_ARGUMENTS_BYTES {
            self.place = Place::Broken;
        }
        for char in piece.chars() {
            match self.place {
                Place::End | Place::Broken => return,
                Place::Name => self.name_char(char),
                Place::Value => self.value_char(char, each),
                _ if matches!(char, ' ' | '\t' | '\n' | '\r') => {}
                place => self.between(place, char, each),
            }
        }
        if self.place == Place::Value {
            self.hand_out(each);
        }
    }

    fn between(&mut self, place: Place, char: char, each: &mut impl FnMut(&str, ArgumentPart<'_>)) {
        self.place = match (place, char) {
            (Place::Start, '{') | (Place::AfterValue, ',') => Place::BeforeName,
            (Place::BeforeName, '"') => {
                self.begin();
                self.name_char(char);
                Place::Name
            }
            (Place::BeforeColon, ':') => Place::BeforeValue,
            (Place::BeforeValue, _) => {
                self.begin();
                self.place = Place::Value;
                return self.value_char(char, each);
            }
            (Place::BeforeName | Place::AfterValue, '}') => Place::End,
            _ => Place::Broken,
        };
    }

    fn begin(&mut self) {
        self.raw.clear();
        (self.string, self.depth) = (StringScan::default(), 0);
        (self.sent, self.whole) = (1, 1);
    }

    fn name_char(&mut self, char: char) {
        self.string_char(char);
        if !self.string.is_open {
            match serde_json::from_str(&self.raw) {
                Ok(name) => (self.name, self.place) = (name, Place::BeforeColon),
                Err(_) => self.place = Place::Broken,
            }
        }
    }

    fn string_char(&mut self, char: char) {
        self.raw.push(char);
        self.string.read(char);
    }

    fn value_char(&mut self, char: char, each: &mut impl FnMut(&str, ArgumentPart<'_>)) {
        let is_scalar = self.depth == 0 && !self.string.is_open && !self.raw.is_empty();
        let is_array = self.raw.starts_with('[');
        if self.string.is_open || char == '"' && !is_scalar {
            self.string_char(char);
            if self.depth == 0 && !self.string.is_open {
                self.close(Place::AfterValue, each);
            } else if !self.string.is_within_char() {
                self.whole = self.raw.len();
            }
            return;
        }
        match char {
            ',' if is_scalar => return self.close(Place::BeforeName, each),
            '}' if is_scalar => return self.close(Place::End, each),
            ',' if self.depth == 1 && is_array => self.end_item(each),
            '[' | '{' => self.depth += 1,
            ']' | '}' if self.depth == 0 => self.place = Place::Broken,
            ']' | '}' => {
                if self.depth == 1 && is_array {
                    self.end_item(each);
                }
                self.depth -= 1;
            }
            _ => {}
        }
        self.raw.push(char);
        match char {
            '[' | '{' if self.depth == 1 => (self.item, self.sent) = (self.raw.len(), 0),
            ',' if self.depth == 1 => self.item = self.raw.len(),
            ']' | '}' if self.depth == 1 && is_array => self.end_item(each),
            ']' | '}' if self.depth == 0 && self.place == Place::Value => {
                self.close(Place::AfterValue, each)
            }
            _ => {}
        }
    }

    fn end_item(&mut self, each: &mut impl FnMut(&str, ArgumentPart<'_>)) {
        let item = self.raw[self.item..].trim();
        if !item.is_empty() {
            each(&self.name, ArgumentPart::Item(item));
        }
        self.item = self.raw.len();
    }

    fn close(&mut self, next: Place, each: &mut impl FnMut(&str, ArgumentPart<'_>)) {
        self.hand_out(each);
        if self.place != Place::Broken {
            each(&self.name, ArgumentPart::Closed(&self.raw));
            self.place = next;
        }
    }

    /// Returns the new part of an open string, object or array.
    fn hand_out(&mut self, each: &mut impl FnMut(&str, ArgumentPart<'_>)) {
        match self.raw.as_bytes().first() {
            Some(b'"') if self.whole > self.sent => {
                match serde_json::from_str::<String>(&format!(
                    "\"{}\"",
                    &self.raw[self.sent..self.whole]
                )) {
                    Ok(text) => each(&self.name, ArgumentPart::Text(&text)),
                    Err(_) => self.place = Place::Broken,
                }
                self.sent = self.whole;
            }
            Some(b'[' | b'{') if self.raw.len() > self.sent => {
                each(&self.name, ArgumentPart::Json(&self.raw[self.sent..]));
                self.sent = self.raw.len();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Reads the pieces, and returns the parts, with adjacent pieces of a value joined.
    fn read<'a>(
        pieces: impl IntoIterator<Item = &'a str>,
    ) -> (Vec<(String, &'static str, String)>, Place) {
        let mut reader = ArgumentsReader::default();
        let mut parts: Vec<(String, &'static str, String)> = Vec::new();
        for piece in pieces {
            reader.push(piece, &mut |name, part| {
                let (kind, text) = match part {
                    ArgumentPart::Text(text) => ("text", text),
                    ArgumentPart::Json(text) => ("json", text),
                    ArgumentPart::Item(text) => ("item", text),
                    ArgumentPart::Closed(text) => ("closed", text),
                };
                let joins = |part: &&mut (String, &str, String)| {
                    part.0 == name && part.1 == kind && kind != "item"
                };
                match parts
                    .iter_mut()
                    .rev()
                    .find(|part| part.0 == name && part.1 == kind)
                    .filter(joins)
                {
                    Some(part) => part.2.push_str(text),
                    None => parts.push((name.to_owned(), kind, text.to_owned())),
                }
            });
        }
        parts.sort();
        (parts, reader.place)
    }

    fn split(text: &str, size: usize) -> Vec<&str> {
        let mut ends: Vec<usize> =
            (size..text.len()).step_by(size).filter(|at| text.is_char_boundary(*at)).collect();
        ends.push(text.len());
        ends.iter()
            .scan(0, |start, end| Some(&text[std::mem::replace(start, *end)..*end]))
            .collect()
    }

    #[test]
    fn open_strings_items_and_closed_values_come_in_order() {
        let mut reader = ArgumentsReader::default();
        let mut seen = Vec::new();
        for piece in [
            "{\"a\": \"x",
            "\\u00e9\\",
            "n\", \"b\" : [1, {\"c\":[2]}",
            " , \"]\"",
            "], \"d\":tr",
            "ue}",
            "rest",
        ] {
            reader.push(piece, &mut |name, part| seen.push(format!("{name} {part:?}")));
        }
        let expected = [
            r#"a Text("x")"#,
            r#"a Text("é")"#,
            r#"a Text("\n")"#,
            r#"a Closed("\"x\\u00e9\\n\"")"#,
            r#"b Item("1")"#,
            r#"b Item("{\"c\":[2]}")"#,
            r#"b Json("[1, {\"c\":[2]}")"#,
            r#"b Json(" , \"]\"")"#,
            r#"b Item("\"]\"")"#,
            r#"b Json("]")"#,
            r#"b Closed("[1, {\"c\":[2]} , \"]\"]")"#,
            r#"d Closed("true")"#,
        ];
        assert_eq!(seen, expected);
        assert_eq!(reader.place, Place::End);
    }

    #[test]
    fn text_that_is_no_object_breaks_the_reader_and_hands_out_no_closed_value() {
        for text in [
            "[1]",
            "{1",
            "{\"a\" 1}",
            "{\"a\":]",
            "{\"a\":\"\\ud800x\"}",
            "{\"a\":\"\\q\"}",
            "{\"\\ud800\":1}",
        ] {
            let (parts, place) = read([text]);
            assert_eq!(place, Place::Broken, "{text}");
            assert!(parts.iter().all(|part| part.1 != "closed"), "{text}: {parts:?}");
        }
    }

    #[test]
    fn arguments_over_the_bound_are_not_read_on() {
        let text = "x".repeat(MAX_ARGUMENTS_BYTES / 2);
        let (parts, place) = read(["{\"a\":\"", &text, &text, "\"}"]);
        assert_eq!(place, Place::Broken);
        assert!(parts.iter().all(|part| part.1 == "text" && part.2.len() <= MAX_ARGUMENTS_BYTES));
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "\\PC*".prop_map(Value::from),
            Just(json!("\u{1F600}\"\\\n[{,")),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("\\PC{0,4}", inner, 0..5).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_split_of_the_text_hands_out_the_same(
            members in prop::collection::btree_map("\\PC{0,6}", values(), 0..5),
            size in 1usize..40,
            is_escaped: bool,
            is_pretty: bool,
        ) {
            let text = if is_pretty { serde_json::to_string_pretty(&members) } else { serde_json::to_string(&members) };
            let mut text = text.unwrap();
            if is_escaped {
                let escape = |c: char| c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
                text = text.chars().map(|c| if c.is_ascii() { c.to_string() } else { escape(c) }).collect();
            }
            let (whole, place) = read([&*text]);
            prop_assert_eq!(place, Place::End);
            prop_assert_eq!(&read(split(&text, size)).0, &whole);
            for (name, value) in &members {
                let find = |kind: &'static str| {
                    let of_kind = whole.iter().filter(move |part| part.0 == *name && part.1 == kind);
                    of_kind.map(|part| &*part.2)
                };
                let closed: Value = serde_json::from_str(find("closed").next().unwrap()).unwrap();
                prop_assert_eq!(&closed, value);
                match value {
                    Value::String(text) => prop_assert_eq!(&find("text").collect::<String>(), text),
                    Value::Array(items) => {
                        let read = find("item").map(|item| serde_json::from_str(item).unwrap());
                        let mut read: Vec<Value> = read.collect();
                        let mut items = items.clone();
                        read.sort_by_key(Value::to_string);
                        items.sort_by_key(Value::to_string);
                        prop_assert_eq!(read, items);
                    }
                    _ => {}
                }
            }
        }
    }
}
