//! [`AgentError`]: what the client sees of a failure, apart from what the log keeps.

use std::{borrow::Cow, error::Error as StdError, fmt};

/// A failure that ends a run with `RUN_ERROR`. An error converted by `?` reaches the client as `the agent failed`, with
/// the code `agent_error`; only the log has its text and causes.
pub struct AgentError {
    code: Cow<'static, str>,
    message: Cow<'static, str>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl AgentError {
    /// A failure with a code for programs and a message for people, both sent to the client.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code.into(), message: message.into(), source: None }
    }

    /// A failure that the client sees as `the agent failed`, for errors that `?` cannot convert, such as texts and
    /// `anyhow::Error`.
    pub fn internal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new("agent_error", "the agent failed").caused_by(source)
    }

    /// Adds a cause, which only the log shows.
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The code, for programs.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The message, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The cause, which only the log shows.
    pub fn source(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    pub(crate) fn into_code_and_message(self) -> (Cow<'static, str>, String) {
        (self.code, self.message.into_owned())
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for AgentError {
    fn from(source: E) -> Self {
        Self::internal(source)
    }
}

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
