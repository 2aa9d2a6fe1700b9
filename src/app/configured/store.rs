//! Opens the store that a configuration names.

use std::sync::Arc;

#[cfg(feature = "postgres")]
use crate::store::PostgresStore;
#[cfg(feature = "sqlite")]
use crate::store::SqliteStore;
use crate::{
    config::{Config, StoreUrl},
    store::{MemoryStore, OpenError, Store},
};

/// Opens the store, and names it for the log.
pub(in crate::app) async fn open_store(config: &Config) -> Result<(Arc<dyn Store>, String), OpenError> {
    // `Sources::load` has reported an invalid URL.
    match config.store.read(&config.server.data_dir) {
        Ok(StoreUrl::Memory) | Err(_) => Ok((Arc::new(MemoryStore::new()), "memory".to_owned())),
        #[cfg(feature = "sqlite")]
        Ok(StoreUrl::Sqlite(path)) => Ok((Arc::new(SqliteStore::open(&path).await?), path.display().to_string())),
        #[cfg(not(feature = "sqlite"))]
        Ok(StoreUrl::Sqlite(_)) => Err(OpenError::NotBuilt { store: "SQLite", feature: "sqlite" }),
        #[cfg(feature = "postgres")]
        Ok(StoreUrl::Postgres(url)) => Ok((Arc::new(PostgresStore::open(url).await?), without_credentials(url))),
        #[cfg(not(feature = "postgres"))]
        Ok(StoreUrl::Postgres(_)) => Err(OpenError::NotBuilt { store: "Postgres", feature: "postgres" }),
    }
}

/// The server and the database of a URL.
#[cfg(feature = "postgres")]
fn without_credentials(url: &str) -> String {
    let parsed = reqwest::Url::parse(url).ok();
    let named = parsed.and_then(|url| Some(format!("postgres://{}{}", url.host_str()?, url.path())));
    named.unwrap_or_else(|| "postgres".to_owned())
}
