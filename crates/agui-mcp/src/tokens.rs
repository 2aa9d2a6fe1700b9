//! The access tokens of a session: of this server, or of a person.

use std::sync::Arc;

use super::oauth::AccessTokens;
use agui_tools::login::PersonTokens;

#[derive(Clone)]
pub(super) enum Tokens {
    OfServer(Arc<AccessTokens>),
    OfPerson(Arc<PersonTokens>),
}

impl Tokens {
    /// Returns the current token; `None` if a person has to log in. An error has no secrets.
    pub(super) async fn current(&self) -> Result<Option<Arc<str>>, String> {
        match self {
            Self::OfServer(tokens) => tokens.current().await.map(Some),
            Self::OfPerson(tokens) => tokens.current().await,
        }
    }

    /// Returns another token than one that the MCP server has refused.
    pub(super) async fn replace(&self, refused: &str) -> Result<Option<Arc<str>>, String> {
        match self {
            Self::OfServer(tokens) => tokens.replace(refused).await.map(Some),
            Self::OfPerson(tokens) => tokens.replace(refused).await,
        }
    }

    /// Notes whether the MCP server has refused a request for want of a login.
    pub(super) fn set_refused(&self, is_refused: bool) {
        if let Self::OfPerson(tokens) = self {
            tokens.set_refused(is_refused);
        }
    }

    pub(super) fn is_of_person(&self) -> bool {
        matches!(self, Self::OfPerson(_))
    }

    /// Returns the words that must not appear in results.
    pub(super) fn secrets(&self) -> Vec<String> {
        match self {
            Self::OfServer(tokens) => tokens.secrets(),
            Self::OfPerson(tokens) => tokens.secrets(),
        }
    }
}
