//! Opens the store that a configuration names.

use std::{path::Path, sync::Arc};

use crate::server::options::{Config, StoreUrl};
use agui_store::{MemoryStore, OpenError, Store};

/// Opens the store, and names it for the log.
pub(in crate::server) async fn open_store(
    config: &Config,
) -> Result<(Arc<dyn Store>, String), OpenError> {
    // `Sources::load` has reported an invalid URL.
    match config.store.read(&config.server.data_dir) {
        Ok(StoreUrl::Memory) | Err(_) => Ok((Arc::new(MemoryStore::new()), "memory".to_owned())),
        Ok(StoreUrl::Sqlite(path)) => Ok((open_sqlite(&path).await?, path.display().to_string())),
        Ok(StoreUrl::Postgres { url, listen_url }) => {
            Ok((open_postgres(url, listen_url).await?, without_credentials(url)))
        }
    }
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(path: &Path) -> Result<Arc<dyn Store>, OpenError> {
    Ok(Arc::new(agui_store::SqliteStore::open(path).await?))
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(_path: &Path) -> Result<Arc<dyn Store>, OpenError> {
    Err(OpenError::NotBuilt { store: "SQLite", feature: "sqlite" })
}

#[cfg(feature = "postgres")]
async fn open_postgres(url: &str, listen_url: Option<&str>) -> Result<Arc<dyn Store>, OpenError> {
    use agui_store::PostgresStore;
    Ok(Arc::new(match listen_url {
        Some(listen_url) => PostgresStore::open_pooled(url, listen_url).await?,
        None => PostgresStore::open(url).await?,
    }))
}

#[cfg(not(feature = "postgres"))]
async fn open_postgres(_url: &str, _listen_url: Option<&str>) -> Result<Arc<dyn Store>, OpenError> {
    Err(OpenError::NotBuilt { store: "Postgres", feature: "postgres" })
}

/// The server and the database of a URL.
fn without_credentials(url: &str) -> String {
    let parsed = reqwest::Url::parse(url).ok();
    let port = |url: &reqwest::Url| url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let named = parsed.and_then(|url| {
        Some(format!("postgres://{}{}{}", url.host_str()?, port(&url), url.path()))
    });
    named.unwrap_or_else(|| "postgres".to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_server_and_database_are_named_without_credentials() {
        for (url, named) in [
            ("postgres://ann:secret@db.local:5433/threads", "postgres://db.local:5433/threads"),
            ("postgres://ann@db.local/threads?sslmode=require", "postgres://db.local/threads"),
            ("postgres:///threads", "postgres"),
        ] {
            assert_eq!(super::without_credentials(url), named);
        }
    }
}
