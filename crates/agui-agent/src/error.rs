//! [`AgentError`]: a failure as the client sees it, with a cause for the log.

use std::{borrow::Cow, error::Error as StdError, fmt};

use crate::files::UploadError;
use agui_base::{RunErrorCode, refusal::RefusalCodes as _, text::error_chain};

type BoxError = Box<dyn StdError + Send + Sync>;

/// The result of an async function that is an agent. `?` converts any error, also `anyhow::Error`
/// and texts: the client sees `the agent failed`, and only the log has the error with its causes.
/// An [`AgentError`] keeps its code and its message.
pub type AgentResult = Result<(), BoxError>;

/// A failure that ends a run with `RUN_ERROR`: a code and a message for the client, and a cause for the log alone.
///
/// It is an error like any other, so `?` works in functions that return `anyhow::Result`, `Result<_, Box<dyn Error>>` or
/// [`AgentResult`], and its code reaches the client from there. In functions that return `Result<_, AgentError>`, other
/// errors become one with [`AgentError::internal`].
pub struct AgentError(Box<Shown>);

/// The failure as the client sees it. It is the source of its [`AgentError`], so that it can be
/// found in a chain of errors whose types hide the [`AgentError`].
#[derive(Debug, thiserror::Error)]
#[error("{code}")]
struct Shown {
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    #[source]
    cause: Option<BoxError>,
}

impl AgentError {
    /// A failure with a code for programs and a message for people, both sent to the client.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Shown { code: code.into(), message: message.into(), cause: None }))
    }

    /// A failure that the client sees as `the agent failed`, with the code `agent_error`. Only the log has its text and
    /// causes.
    pub fn internal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(RunErrorCode::AgentError, "the agent failed").caused_by(cause)
    }

    /// Adds a cause, which only the log shows.
    pub fn caused_by(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// The code, for programs.
    pub fn code(&self) -> &str {
        &self.0.code
    }

    /// The message, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    #[doc(hidden)]
    pub fn into_code_and_message(self) -> (Cow<'static, str>, String) {
        (self.0.code, self.0.message.into_owned())
    }
}

/// An error of any type. An [`AgentError`] among its causes decides what the client sees.
impl From<BoxError> for AgentError {
    fn from(error: BoxError) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(error) => return *error,
            Err(error) => error,
        };
        let mut causes =
            std::iter::successors(Some(&*error as &(dyn StdError + 'static)), |error| {
                (**error).source()
            });
        let shown = causes.find_map(|error| error.downcast_ref::<Shown>());
        match shown.map(|shown| Self::new(shown.code.clone(), shown.message.clone())) {
            Some(failure) => failure.caused_by(error),
            None => Self::internal(error),
        }
    }
}

impl From<UploadError> for AgentError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Store(error) => Self::new(
                RunErrorCode::FilesUnavailable,
                "the file cannot be stored now; please try again",
            )
            .caused_by(error),
            error => Self::new(error.refusal_code().name, error.to_string()),
        }
    }
}

impl From<serde_json::Error> for AgentError {
    fn from(error: serde_json::Error) -> Self {
        Self::internal(error)
    }
}

impl From<std::io::Error> for AgentError {
    fn from(error: std::io::Error) -> Self {
        Self::internal(error)
    }
}

impl StdError for AgentError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)?;
        self.0.cause.as_ref().map_or(Ok(()), |cause| write!(f, ": {}", error_chain(&**cause)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("request failed")]
    struct Outer<E: StdError + 'static>(#[source] E);

    #[test]
    fn the_log_sees_the_whole_chain_and_the_client_none_of_it() {
        let error = AgentError::from(BoxError::from(Outer(std::io::Error::other("refused"))));
        assert_eq!(format!("{error:?}"), "agent_error: the agent failed: request failed: refused");
        assert_eq!(error.message(), "the agent failed");
    }

    #[test]
    fn an_agent_error_keeps_its_code_in_errors_of_other_types() {
        let sold_out =
            || AgentError::new("sold_out", "Nothing left").caused_by("the shelf is empty");
        let sell = || -> AgentResult { Err(sold_out())? };
        let plain = AgentError::from(sell().unwrap_err());
        assert_eq!(format!("{plain:?}"), "sold_out: Nothing left: the shelf is empty");
        // As with `anyhow`, whose boxed errors cannot be downcast.
        let wrapped = AgentError::from(BoxError::from(Outer(Outer(sold_out()))));
        assert_eq!((wrapped.code(), wrapped.message()), ("sold_out", "Nothing left"));
    }
}
