//! Calls that a model wrote as text at the end of its answer, and that the server did not parse.
//! They are held back while they stream. If all of them call offered tools, the agent gets them;
//! otherwise they are text.
//!
//! The time is linear: decided text is not read again, and undecided text is bounded.

use std::sync::Arc;

use super::{calls::MAX_CALLS, tags::first_tag};
use crate::{
    known_models::{WrittenForm, WrittenSyntax},
    written_syntax::read_calls,
};
use agui_protocol::FunctionCall;
use agui_tools::ToolSpec;

/// The longest white space before or after an opening. A longer one is text.
const MAX_WHITE_SPACE: usize = 1024;

/// The text that was held back at the end of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrittenEnd {
    pub(crate) text: String,
    /// The calls of the text; empty if it has other content.
    pub(crate) calls: Vec<FunctionCall>,
}

#[derive(Debug, Default)]
pub(crate) struct WrittenCallReader {
    /// The forms of calls; empty if no calls are read.
    forms: Arc<[WrittenForm]>,
    tools: Arc<[ToolSpec]>,
    held: String,
    /// The number of the form whose opening begins the held text.
    open: Option<usize>,
    /// True if all text after the opening is held until the end of the answer.
    is_decided: bool,
    has_text: bool,
}

impl WrittenCallReader {
    pub(crate) fn new(forms: Arc<[WrittenForm]>, tools: Arc<[ToolSpec]>) -> Self {
        let forms = if tools.is_empty() { Arc::default() } else { forms };
        Self { forms, tools, ..Self::default() }
    }

    /// Returns whether no calls are read.
    pub(super) fn is_off(&self) -> bool {
        self.forms.is_empty()
    }

    /// Returns the text that is not a part of a call.
    pub(crate) fn read(&mut self, text: &str) -> String {
        let mut shown = String::new();
        self.held.push_str(text);
        if !self.is_decided {
            let held = std::mem::take(&mut self.held);
            let mut rest = held.as_str();
            while self.step(&mut rest, &mut shown) {}
            self.held = rest.to_owned();
        }
        shown
    }

    pub(crate) fn end(&mut self) -> WrittenEnd {
        let text = std::mem::take(&mut self.held);
        let calls = self.open.take().and_then(|form| self.calls(&self.forms[form], text.trim()));
        WrittenEnd { text, calls: calls.unwrap_or_default() }
    }

    /// Takes text from the beginning of `rest`. Returns whether `rest` may have more of it.
    fn step(&mut self, rest: &mut &str, shown: &mut String) -> bool {
        if let Some(open) = self.open {
            let may_be_calls = self.may_be_calls(open, rest);
            self.is_decided = may_be_calls == Some(true);
            if may_be_calls != Some(false) {
                return false;
            }
            self.open = None;
            let white_space = rest.len() - rest.trim_start().len();
            self.show(white_space + self.forms[open].opening.len(), rest, shown);
            return true;
        }
        let (end, found) = self.first_opening(rest);
        // White space alone is a part of the text after it.
        if self.has_text || end > MAX_WHITE_SPACE || !rest[..end].trim().is_empty() {
            self.show(end, rest, shown);
        }
        self.open = found;
        found.is_some()
    }

    fn show(&mut self, end: usize, rest: &mut &str, shown: &mut String) {
        let (text, after) = rest.split_at(end);
        shown.push_str(text);
        *rest = after;
        self.has_text = true;
    }

    /// Returns the place and the form of the first opening. Without one, returns the place from
    /// which the text may be the beginning of an opening.
    fn first_opening(&self, text: &str) -> (usize, Option<usize>) {
        let forms = self.forms.iter().enumerate();
        let (python, others): (Vec<_>, Vec<_>) =
            forms.partition(|(_, form)| form.syntax == WrittenSyntax::Python);
        // A list in brackets is common in texts, so it has to begin the answer and the name of a tool.
        let begin = text.trim_start();
        let white_space = text.len() - begin.len();
        if !self.has_text && white_space <= MAX_WHITE_SPACE {
            for (number, form) in python {
                let starts =
                    || self.tools.iter().map(|tool| format!("{}{}(", form.opening, tool.name));
                if starts().any(|start| begin.starts_with(&start)) {
                    return (white_space, Some(number));
                }
                if starts().any(|start| start.starts_with(begin)) {
                    return (0, None);
                }
            }
        }
        first_tag(text, others.iter().map(|(number, form)| (*number, form.opening.as_str())))
    }

    /// Returns whether the text after the opening may be calls; `None` while it may be both, calls
    /// and text.
    fn may_be_calls(&self, form: usize, text: &str) -> Option<bool> {
        let form = &self.forms[form];
        let after = text.trim_start().strip_prefix(&form.opening).unwrap_or_default();
        let rest = after.trim_start();
        match (form.syntax, rest.chars().next()) {
            (WrittenSyntax::Python | WrittenSyntax::Invoke, _)
            | (WrittenSyntax::Json, Some('{' | '[')) => Some(true),
            (WrittenSyntax::Json, None) => (after.len() > MAX_WHITE_SPACE).then_some(false),
            (WrittenSyntax::Json, Some(_))
                if self.tools.iter().any(|tool| rest.starts_with(&tool.name)) =>
            {
                Some(true)
            }
            (WrittenSyntax::Json, Some(_)) => {
                let may_be_name = self.tools.iter().any(|tool| tool.name.starts_with(rest));
                (!may_be_name).then_some(false)
            }
        }
    }

    /// Returns the calls. Returns `None` unless the text consists of calls of offered tools.
    fn calls(&self, form: &WrittenForm, text: &str) -> Option<Vec<FunctionCall>> {
        let is_on_offer =
            |call: &FunctionCall| self.tools.iter().any(|tool| tool.name == call.name);
        read_calls(form, text)
            .filter(|calls| calls.len() <= MAX_CALLS && calls.iter().all(is_on_offer))
    }
}

#[cfg(test)]
mod tests;
