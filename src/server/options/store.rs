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
    /// The place of threads, their messages, states and open interrupts, and of logs of detached
    /// runs. `sqlite:PATH`: a file; a relative path starts in `data_dir`.
    /// `postgres://user:password@host/database`: a database that several servers can share; better
    /// set it with the environment variable `AGUI_STORE__URL`. `memory:`: the process; a restart
    /// loses everything.
    #[cfg_attr(
        test,
        schemars(regex(pattern = "^(memory:$|sqlite:([^/]|/$|/[^/]|//.)|postgres(ql)?://)"))
    )]
    // May contain a password, so `Debug` shows the scheme only.
    #[default("sqlite:agui-server.sqlite".to_owned())]
    pub(crate) url: String,
    /// If `url` is that of a pooler such as PgBouncer in transaction mode: the URL of the Postgres database itself, to which
    /// each server has one connection for notifications.
    #[cfg_attr(test, schemars(regex(pattern = "^postgres(ql)?://")))]
    pub(crate) listen_url: Option<String>,
}

/// A parsed `store.url`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl<'a> {
    /// In the memory of the process.
    Memory,
    /// In a SQLite file.
    Sqlite(PathBuf),
    /// In a Postgres database, which several servers can share.
    Postgres { url: &'a str, listen_url: Option<&'a str> },
}

impl StoreConfig {
    /// Parses the URL. A relative path of a file starts in the data folder.
    ///
    /// # Errors
    /// The reason why the URL is invalid, without the URL, which may contain a password.
    pub(crate) fn read(&self, data_dir: &Path) -> Result<StoreUrl<'_>, &'static str> {
        let is_postgres =
            |url: &str| url.starts_with("postgres://") || url.starts_with("postgresql://");
        let listen_url = self.listen_url.as_deref();
        if listen_url.is_some_and(|listen_url| !is_postgres(listen_url) || !is_postgres(&self.url))
        {
            return Err("with listen_url, both URLs begin with \"postgres://\"");
        }
        let path =
            self.url.strip_prefix("sqlite:").map(|path| path.strip_prefix("//").unwrap_or(path));
        match path {
            Some("") => Err("\"sqlite:\" needs the path of a file"),
            Some(path) => Ok(StoreUrl::Sqlite(data_dir.join(path))),
            None if self.url == "memory:" => Ok(StoreUrl::Memory),
            None if is_postgres(&self.url) => Ok(StoreUrl::Postgres { url: &self.url, listen_url }),
            None => Err("expected \"memory:\", \"sqlite:PATH\" or \"postgres://…\""),
        }
    }
}

impl fmt::Debug for StoreConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.url.split(':').next().unwrap_or_default();
        f.debug_struct("StoreConfig")
            .field("url", &format_args!("{scheme}:…"))
            .finish_non_exhaustive()
    }
}
