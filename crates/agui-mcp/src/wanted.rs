//! The form or visit that a server asks a person for.

use std::fmt;

use serde_json::Value;

use agui_base::upstream::trust::server_url;

const MAX_QUESTION_BYTES: usize = 4 * 1024;
/// The largest form and the longest question that a person is shown, in bytes.
const MAX_FORM_BYTES: usize = 16 * 1024;

/// The form or visit that a server asks a person for.
#[derive(Debug)]
pub(super) enum Wanted {
    /// An object that fits a JSON Schema.
    Form(Value),
    /// A visit of a page, by its URL.
    Visit(String),
}

impl Wanted {
    /// Reads the parameters of a question: its text, and what is wanted. `None` for another kind,
    /// and for a URL that is not a web page.
    pub(super) fn read(params: &Value) -> Option<(String, Self)> {
        let text = |key: &str| params.get(key).and_then(Value::as_str);
        let wanted = match text("mode") {
            Some("url") => Self::Visit(server_url(text("url")?)?.into()),
            None | Some("form") => Self::Form(params.get("requestedSchema")?.clone()),
            Some(_) => return None,
        };
        Some((text("message")?.to_owned(), wanted))
    }

    /// Returns whether the form and its question are short enough to be shown to a person.
    pub(super) fn is_short(&self, question: &str) -> bool {
        question.len() <= MAX_QUESTION_BYTES && self.to_string().len() <= MAX_FORM_BYTES
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form(form) => form.fmt(f),
            Self::Visit(url) => url.fmt(f),
        }
    }
}
