//! Decisions made of a fuzzer's bytes.

use serde_json::{Map, Value};

/// Makes decisions from bytes; missing bytes are zero.
pub struct Choices<'a>(std::slice::Iter<'a, u8>);

/// Names of members that are special somewhere: list indices, escapes, names that JavaScript treats specially.
const NAMES: [&str; 13] = ["a", "b", "c", "0", "1", "01", "-", "", "~", "/", "__proto__", "constructor", "prototype"];

impl<'a> Choices<'a> {
    /// Makes the decisions that the bytes describe.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    /// Returns whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % limit
    }

    /// Returns the name of a member.
    pub fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }

    /// Returns a JSON value of at most this depth.
    pub fn json(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 7 } else { 10 }) {
            0 => Value::Null,
            1 => true.into(),
            2 => 1.into(),
            3 => Value::from(1.0),
            4 => Value::from(-0.0),
            5 => u64::MAX.into(),
            6 => self.name().into(),
            7 | 8 => {
                let mut object = Map::new();
                for _ in 0..self.below(4) {
                    object.insert(self.name().to_owned(), self.json(depth - 1));
                }
                object.into()
            }
            _ => (0..self.below(4)).map(|_| self.json(depth - 1)).collect(),
        }
    }

    /// Returns a JSON Pointer. One in 16 is not valid.
    pub fn pointer(&mut self) -> String {
        match self.below(16) {
            15 => ["a", "/~2", "/a~", "~"][self.below(4)].to_owned(),
            tokens => {
                let token = |name: &str| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
                (0..tokens % 5).map(|_| token(self.name())).collect()
            }
        }
    }
}
