//! The decoder's place in the input, such as `messages[3].content[0].source`.

use std::fmt;

use serde::de;

use super::{diagnostics::Diagnostics, error::DecodeError};

/// A path as a chain of stack frames: it becomes text only when an error or an ignored part is reported.
#[derive(Clone, Copy)]
pub(crate) struct JsonPath<'a> {
    pub(super) diagnostics: &'a Diagnostics,
    parent: Option<&'a JsonPath<'a>>,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Root,
    Member(&'static str),
    Item(usize),
}

impl<'a> JsonPath<'a> {
    pub(super) fn root(diagnostics: &'a Diagnostics) -> Self {
        Self { diagnostics, parent: None, step: Step::Root }
    }

    pub(super) fn member(&'a self, name: &'static str) -> Self {
        Self { diagnostics: self.diagnostics, parent: Some(self), step: Step::Member(name) }
    }

    pub(super) fn item(&'a self, index: usize) -> Self {
        Self { diagnostics: self.diagnostics, parent: Some(self), step: Step::Item(index) }
    }

    pub(super) fn parent(&self) -> &JsonPath<'a> {
        self.parent.unwrap_or(self)
    }

    /// Records that the value at this path is wrong, and returns the error that ends decoding.
    pub(super) fn malformed<E: de::Error>(&self, problem: impl Into<String>) -> E {
        let error = || DecodeError::Malformed { path: self.to_string(), problem: problem.into() };
        self.diagnostics.record(error);
        E::custom("malformed")
    }

    pub(super) fn unexpected<E: de::Error>(&self, expected: &str, found: &str) -> E {
        self.malformed(format!("expected {expected}, found {found}"))
    }

    pub(crate) fn required<T, E: de::Error>(
        &self,
        value: Option<T>,
        name: &'static str,
    ) -> Result<T, E> {
        value.ok_or_else(|| self.member(name).malformed("missing"))
    }

    /// Counts a value of an open payload. Fails if there are too many.
    pub(super) fn count_open_value<E: de::Error>(&self) -> Result<(), E> {
        let Diagnostics { open_values, max_open_values: limit, .. } = self.diagnostics;
        open_values.update(|count| count + 1);
        if open_values.get() <= *limit {
            return Ok(());
        }
        self.diagnostics
            .record(|| DecodeError::TooManyValues { path: self.to_string(), limit: *limit });
        Err(E::custom("too many values"))
    }
}

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            fmt::Display::fmt(parent, f)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Member(name) if matches!(self.parent().step, Step::Root) => f.write_str(name),
            Step::Member(name) => write!(f, ".{name}"),
            Step::Item(index) => write!(f, "[{index}]"),
        }
    }
}
