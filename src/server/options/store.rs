//! The section `[store]`.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use smart_default::SmartDefault;

/// The place where threads are stored: the section `[store]`.
#[derive(Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StoreConfig {
    /// `sqlite:PATH`: a file; a relative path starts in `data_dir`. `postgres://user:password@host/database`: a
    /// database that several servers can share. `memory:`: the process; a restart loses everything.
    #[cfg_attr(test, schemars(regex(pattern = "^(memory:$|sqlite:([^/]|/$|/[^/]|//.)|postgres(ql)?://)")))]
    // May contain a password, so `Debug` shows the scheme only.
    #[default("sqlite:agui-server.sqlite".to_owned())]
    pub(crate) url: String,
}

/// A parsed `store.url`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl<'a> {
    /// In the memory of the process.
    Memory,
    /// In a SQLite file.
    Sqlite(PathBuf),
    /// In a Postgres database, which several servers can share.
    Postgres(&'a str),
}

impl StoreConfig {
    /// Parses the URL. A relative path of a file starts in the data folder.
    ///
    /// # Errors
    /// The reason why the URL is invalid, without the URL, which may contain a password.
    pub(crate) fn read(&self, data_dir: &Path) -> Result<StoreUrl<'_>, &'static str> {
        if self.url == "memory:" {
            return Ok(StoreUrl::Memory);
        }
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err("\"sqlite:\" needs the path of a file"),
                path => Ok(StoreUrl::Sqlite(data_dir.join(path))),
            };
        }
        if self.url.starts_with("postgres://") || self.url.starts_with("postgresql://") {
            return Ok(StoreUrl::Postgres(&self.url));
        }
        Err("expected \"memory:\", \"sqlite:PATH\" or \"postgres://…\"")
    }
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split(':').next().unwrap_or_default();
        f.debug_struct("Store").field("url", &format_args!("{scheme}:…")).finish()
    }
}
