//! JSON Pointers (RFC 6901), as the reference client reads them.

use std::borrow::Cow;

use serde_json::Value;

/// The ways in which a token names an item of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indices {
    /// Decimal numbers without leading zeros.
    Exact,
    /// Also leading zeros, the empty token as 0, and `-` as the end.
    Lenient,
}

impl Indices {
    pub(super) fn read(self, token: &str, length: usize) -> Option<usize> {
        let lenient = self == Self::Lenient;
        if token == "-" {
            return lenient.then_some(length);
        }
        let is_number = token.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = token == "0" || !(token.is_empty() || token.starts_with('0'));
        match token {
            "" => lenient.then_some(0),
            _ if is_number && (lenient || is_canonical) => token.parse().ok(),
            _ => None,
        }
    }
}

/// Returns the value at a pointer.
pub(super) fn find<'d>(
    document: &'d mut Value,
    pointer: &str,
    indices: Indices,
) -> Option<&'d mut Value> {
    let mut before = "";
    pointer.split('/').skip(1).try_fold(document, |value, token| {
        let name = unescape(token);
        let banned = is_banned(before, &name);
        before = token;
        match value {
            Value::Object(object) if !banned => object.get_mut(&*name),
            Value::Array(list) => {
                indices.read(&name, list.len()).and_then(|index| list.get_mut(index))
            }
            _ => None,
        }
    })
}

/// Splits a pointer into the parent's pointer and the last token; `None` for the root.
pub(super) fn split(pointer: &str) -> Option<(&str, Cow<'_, str>)> {
    pointer.rsplit_once('/').map(|(parent, token)| (parent, unescape(token)))
}

fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        token.replace("~1", "/").replace("~0", "~").into()
    } else {
        token.into()
    }
}

/// Returns whether the reference refuses a name, because JavaScript would change the prototype of all objects.
pub(super) fn is_banned(parent: &str, name: &str) -> bool {
    name == "__proto__" || (name == "prototype" && parent.rsplit('/').next() == Some("constructor"))
}
