//! Where the decoder is: a path kept as a chain of stack frames, so that it costs nothing until a
//! fault is reported.

use serde::de;

use super::{DecodeError, log::Log};

/// A place within the input, and the log that faults and omissions go to.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) log: &'a Log,
    parent: Option<&'a At<'a>>,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    Root,
    Member(&'static str),
    Index(usize),
}

impl<'a> At<'a> {
    pub(super) fn root(log: &'a Log) -> Self {
        Self { log, parent: None, step: Step::Root }
    }

    pub(super) fn member(&'a self, name: &'static str) -> At<'a> {
        At { log: self.log, parent: Some(self), step: Step::Member(name) }
    }

    pub(super) fn index(&'a self, index: usize) -> At<'a> {
        At { log: self.log, parent: Some(self), step: Step::Index(index) }
    }

    /// The path as text, such as `messages[3].content[0].source`.
    pub(super) fn path(&self) -> String {
        let mut path = self.parent.map(At::path).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Member(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
        path
    }

    /// Ends decoding: the value here is wrong. The first fault is the one that is reported.
    pub(super) fn fault<E: de::Error>(&self, problem: impl Into<String>) -> E {
        self.log.fault(|| DecodeError::Malformed { path: self.path(), problem: problem.into() });
        E::custom("malformed")
    }

    /// Ends decoding: a value of the wrong kind is here.
    pub(super) fn unexpected<E: de::Error>(&self, expected: &str, found: &str) -> E {
        self.fault(format!("expected {expected}, found {found}"))
    }

    /// A required value, or the fault that it is missing.
    pub(super) fn required<T, E: de::Error>(&self, value: Option<T>, name: &'static str) -> Result<T, E> {
        value.ok_or_else(|| self.member(name).fault("missing"))
    }
}
