//! Notes taken while an input is read: the first error, the ignored parts, the number of open values.

use std::{
    cell::{Cell, RefCell},
    fmt,
};

use super::error::DecodeError;
use agui_base::text::short_name;

const MAX_EXAMPLES: usize = 5;

/// The parts of an input that this version of the protocol does not describe. `Display` writes them for one log line:
/// `3 members, 1 message (messages[0].mood, …)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ignored {
    /// Number of unknown members.
    pub members: usize,
    /// Number of messages of an unknown role.
    pub messages: usize,
    /// Number of content parts of an unknown type, or with a source of an unknown type.
    pub parts: usize,
    /// Paths of the first few ignored parts. A client's own text is escaped and cut.
    pub examples: Vec<String>,
}

impl Ignored {
    /// Returns whether nothing was ignored.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    fn total(&self) -> usize {
        self.members + self.messages + self.parts
    }

    fn add_example(&mut self, example: impl FnOnce() -> String) {
        if self.examples.len() < MAX_EXAMPLES {
            self.examples.push(example());
        }
    }
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts =
            [(self.members, "member"), (self.messages, "message"), (self.parts, "content part")];
        let mut separator = "";
        for (count, name) in counts.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {name}{}", if count == 1 { "" } else { "s" })?;
            separator = ", ";
        }
        write!(f, " ({}", self.examples.join(", "))?;
        f.write_str(if self.total() > self.examples.len() { ", …)" } else { ")" })
    }
}

/// Paths are passed as `Display`, so that they are formatted only when they are kept.
#[derive(Default)]
pub(super) struct Diagnostics {
    pub(super) body_len: usize,
    pub(super) max_open_values: usize,
    pub(super) error: RefCell<Option<DecodeError>>,
    pub(super) ignored: RefCell<Ignored>,
    pub(super) open_values: Cell<usize>,
    pub(super) snake_case: Cell<usize>,
}

impl Diagnostics {
    pub(super) fn new(body_len: usize, max_open_values: usize) -> Self {
        Self { body_len, max_open_values, ..Self::default() }
    }

    /// Keeps the error, if it is the first one.
    pub(super) fn record(&self, error: impl FnOnce() -> DecodeError) {
        self.error.borrow_mut().get_or_insert_with(error);
    }

    pub(super) fn ignore_member(&self, path: impl fmt::Display, name: &str) {
        let mut ignored = self.ignored.borrow_mut();
        ignored.members += 1;
        ignored.add_example(|| {
            let path = path.to_string();
            let dot = if path.is_empty() { "" } else { "." };
            format!("{path}{dot}{}", quote(name))
        });
    }

    /// Counts an object whose kind, the value of the member `tag`, is unknown.
    pub(super) fn ignore_item(
        &self,
        count: fn(&mut Ignored) -> &mut usize,
        path: impl fmt::Display,
        tag: &str,
        kind: &str,
    ) {
        let mut ignored = self.ignored.borrow_mut();
        *count(&mut ignored) += 1;
        ignored.add_example(|| format!("{path} of {tag} {}", quote(kind)));
    }
}

fn quote(text: &str) -> String {
    format!("{:?}", short_name(text))
}
