//! Decisions from numbers that proptest chose.

use agui_server::protocol::{JsonObject, SubagentRunId};
use serde_json::{Value, json};

/// Makes decisions from a list of numbers. Proptest shrinks numbers to zero, and missing numbers are zero, so zero has
/// to select the simplest option.
pub(super) struct Dice<'a> {
    numbers: std::slice::Iter<'a, u32>,
}

impl<'a> Dice<'a> {
    pub(super) fn new(numbers: &'a [u32]) -> Self {
        Self { numbers: numbers.iter() }
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        let number = self.numbers.next().copied().unwrap_or(0) as usize;
        number.checked_rem(limit).unwrap_or(0)
    }

    pub(super) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == one_in - 1
    }

    pub(super) fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    pub(super) fn maybe<T>(
        &mut self,
        one_in: usize,
        make: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        self.chance(one_in).then(|| make(self))
    }

    /// Returns an id for a message, a span or an activity. A [`Walk`](super::Walk) also makes the ids with numbers.
    pub(super) fn id(&mut self) -> &'static str {
        self.pick(&["a", "b", "c", "d", "a", "b", "c", "d", "m1", "m2", "m3", ""])
    }

    /// Returns an id for a call. Some are also ids of messages.
    pub(super) fn call_id(&mut self) -> &'static str {
        self.pick(&["x", "y", "x", "y", "a", "b", "c1", "c2", "c3", ""])
    }

    /// Returns text that is not empty: the server leaves out empty deltas.
    pub(super) fn word(&mut self) -> &'static str {
        self.pick(&["word ", "{\"a\":", "é\n\u{2028}\"", "1}"])
    }

    /// Returns an owner. The empty string is a valid id of an invocation.
    pub(super) fn owner(&mut self) -> Option<SubagentRunId> {
        self.pick(&[None, None, None, None, None, None, Some("s"), Some("s"), Some("s1"), Some("")])
            .map(Into::into)
    }

    pub(super) fn text(&mut self) -> &'static str {
        self.pick(&["word ", "", "{\"a\":", "é\n\u{2028}\"", "1}"])
    }

    pub(super) fn json(&mut self) -> Value {
        match self.below(9) {
            0 => json!({}),
            1 => json!({ "a": 1, "list": [1, 2, { "b": null }] }),
            2 => json!({ "a": { "b": "text" }, "x/y": 0.5 }),
            3 => json!([1, "two", null, { "a": [] }]),
            4 => json!(null),
            5 => json!("text"),
            6 => json!(-12.75),
            7 => json!(9_007_199_254_740_991_u64),
            _ => json!(true),
        }
    }

    pub(super) fn object(&mut self) -> JsonObject {
        let object = match self.below(4) {
            0 => json!({}),
            1 => json!({ "vendor.usage": { "in": 1, "cached": null } }),
            2 => json!({ "vendor.usage": { "out": 2 }, "vendor.trace": "t-1" }),
            _ => json!({ "a": self.json(), "list": [], "x/y": 1 }),
        };
        object.as_object().cloned().unwrap_or_default()
    }
}
