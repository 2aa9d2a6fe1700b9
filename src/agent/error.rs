//! How an agent fails.

use std::{borrow::Cow, error::Error as StdError, fmt};

/// A failure that ends a run with `RUN_ERROR`.
///
/// What the client sees is kept apart from what the log sees: any error that `?` converts reaches the
/// client as `the agent failed` with code `agent_error`, and the log with its whole chain of causes.
/// [`AgentError::new`] is for what the client may know.
///
/// ```
/// use agui_server::agent::AgentError;
///
/// let mut error: AgentError = std::io::Error::other("password is 1234").into();
/// assert_eq!(error.message(), "the agent failed");
/// error = AgentError::new("out_of_stock", "There are no more of these");
/// assert_eq!((error.code(), error.message()), ("out_of_stock", "There are no more of these"));
/// ```
pub struct AgentError {
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl AgentError {
    /// A failure that the client may know: a code for programs and a message for people.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code.into(), message: message.into(), source: None }
    }

    /// Adds a cause, for the log alone.
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What went wrong, for programs.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// What went wrong, for the person at the client.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The cause, for the log.
    pub fn source(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    pub(crate) fn into_code_and_message(self) -> (Cow<'static, str>, String) {
        (self.code, self.message.into_owned())
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for AgentError {
    fn from(source: E) -> Self {
        Self { code: "agent_error".into(), message: "the agent failed".into(), source: Some(Box::new(source)) }
    }
}

/// Everything there is, for a log: code, message and the chain of causes.
impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        let mut cause = self.source.as_deref().map(|source| source as &dyn StdError);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_sees_the_whole_chain_and_the_client_none_of_it() {
        #[derive(Debug, thiserror::Error)]
        #[error("request failed")]
        struct Outer(#[source] std::io::Error);
        let error: AgentError = Outer(std::io::Error::other("connection refused")).into();
        assert_eq!(format!("{error:?}"), "agent_error: the agent failed: request failed: connection refused");
        assert_eq!(error.message(), "the agent failed");
    }
}
