//! [`ServerError`]: the reasons why the server of a configuration does not open.

use std::io;

use crate::{config::ConfigError, store};

/// The reason why [`Server::open`](super::Server::open) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration has a fault.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store cannot be opened.
    #[error("store.url: {0}")]
    Store(#[from] store::OpenError),
}

impl From<ServerError> for io::Error {
    fn from(error: ServerError) -> Self {
        Self::other(error)
    }
}
