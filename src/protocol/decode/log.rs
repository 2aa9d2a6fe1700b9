//! What the decoder notes on its way: the fault that ended it, and what it left out.

use std::{
    cell::{Cell, RefCell},
    fmt,
};

use super::{DecodeError, MAX_OPEN_VALUES, at::At};

/// How many omissions are named; the rest are counted.
const NAMED: usize = 5;
/// How much of a client's own text is repeated for each.
const NAME_CHARS: usize = 48;

/// What was left out of an input, for one line in the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Members that this version of the protocol does not describe.
    pub members: usize,
    /// Messages of a role it does not know.
    pub messages: usize,
    /// Content parts of a kind it does not know.
    pub parts: usize,
    /// The first few of them, by path; whatever the client wrote is escaped and cut short.
    pub examples: Vec<String>,
}

impl Dropped {
    /// Whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        self.members + self.messages + self.parts == 0
    }
}

/// `3 members, 1 message (messages[0].mood, …)`
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [(self.members, "member"), (self.messages, "message"), (self.parts, "content part")];
        let mut separator = "";
        for (count, name) in kinds.into_iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {name}{}", if count == 1 { "" } else { "s" })?;
            separator = ", ";
        }
        write!(f, " ({}", self.examples.join(", "))?;
        f.write_str(if self.members + self.messages + self.parts > self.examples.len() { ", …)" } else { ")" })
    }
}

#[derive(Default)]
pub(super) struct Log {
    fault: RefCell<Option<DecodeError>>,
    dropped: RefCell<Dropped>,
    open_values: Cell<usize>,
    body_len: usize,
}

impl Log {
    pub(super) fn of_body(body_len: usize) -> Self {
        Self { body_len, ..Self::default() }
    }

    pub(super) fn body_len(&self) -> usize {
        self.body_len
    }

    pub(super) fn fault(&self, fault: impl FnOnce() -> DecodeError) {
        let mut slot = self.fault.borrow_mut();
        if slot.is_none() {
            *slot = Some(fault());
        }
    }

    pub(super) fn into_fault(self) -> Option<DecodeError> {
        self.fault.into_inner()
    }

    pub(super) fn into_dropped(self) -> Dropped {
        self.dropped.into_inner()
    }

    /// Notes a member nobody described.
    pub(super) fn drop_member(&self, owner: &At<'_>, name: &str) {
        let mut dropped = self.dropped.borrow_mut();
        dropped.members += 1;
        if dropped.examples.len() < NAMED {
            let path = owner.path();
            let dot = if path.is_empty() { "" } else { "." };
            dropped.examples.push(format!("{path}{dot}{}", quote(name)));
        }
    }

    /// Notes a message of an unknown role.
    pub(super) fn drop_message(&self, at: &At<'_>, role: &str) {
        let mut dropped = self.dropped.borrow_mut();
        dropped.messages += 1;
        dropped.example(at, "role", role);
    }

    /// Notes a content part of an unknown kind.
    pub(super) fn drop_part(&self, at: &At<'_>, kind: &str) {
        let mut dropped = self.dropped.borrow_mut();
        dropped.parts += 1;
        dropped.example(at, "type", kind);
    }

    /// Counts a value of an open payload. Answers whether it is one too many.
    pub(super) fn open_value(&self) -> bool {
        let count = self.open_values.get() + 1;
        self.open_values.set(count);
        count > MAX_OPEN_VALUES
    }
}

impl Dropped {
    fn example(&mut self, at: &At<'_>, discriminator: &str, value: &str) {
        if self.examples.len() < NAMED {
            self.examples.push(format!("{} of {discriminator} {}", at.path(), quote(value)));
        }
    }
}

/// A client's text, fit for a log line.
fn quote(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(NAME_CHARS).collect();
    format!("{head:?}{}", if chars.next().is_some() { "…" } else { "" })
}
