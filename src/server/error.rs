//! [`ServerError`]: the reasons why a server does not open or start.

use std::{io, path::PathBuf};

#[cfg(feature = "config")]
use crate::server::options::ConfigError;
use agui_store as store;

/// The reason why a server does not open or start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The configuration has a fault.
    #[cfg(feature = "config")]
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The path of a client's routes is invalid or taken.
    #[error("{option} {path:?}: {problem}")]
    ClientPath {
        /// The option with the path.
        option: &'static str,
        /// The path.
        path: String,
        /// The rule that it breaks.
        problem: &'static str,
    },
    /// A model has a price that is negative or not a number.
    #[error("prices.{0:?}: prices are numbers of at least 0")]
    Price(String),
    /// The folder of recordings cannot be used.
    #[error("record.dir: the folder {} cannot be used: {error}", dir.display())]
    Record {
        /// The folder.
        dir: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The store cannot be opened.
    #[error("store.url: {0}")]
    Store(#[from] store::OpenError),
}

impl From<ServerError> for io::Error {
    fn from(error: ServerError) -> Self {
        Self::other(error)
    }
}
