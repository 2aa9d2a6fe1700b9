//! The store of a server, and the metrics of its operations.

use std::sync::Arc;

use agui_agent::files::{FileOptions, Files};
use agui_observe::metrics::Metrics;
use agui_store::{EventBatch, SharedStore, Store, StoreError};

/// Measures the operations of a [`Store`], but not of a [`SharedStore`].
#[derive(Clone)]
pub struct MeasuredStore {
    pub store: Arc<dyn Store>,
    metrics: Metrics,
}

impl MeasuredStore {
    pub fn new(store: Arc<dyn Store>, metrics: Metrics) -> Self {
        Self { store, metrics }
    }

    /// Runs an operation, and measures it under this name.
    pub async fn call<'s, T, F>(
        &'s self,
        name: &'static str,
        operation: impl FnOnce(&'s dyn Store) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let under_way = self.metrics.store.begin(name);
        let result = operation(&*self.store).await;
        drop(under_way);
        match &result {
            // The store has not failed if the lease is lost.
            Ok(_) | Err(StoreError::LeaseLost) => {}
            Err(error) if error.is_transient() => self.metrics.store.failed(name, "unavailable"),
            Err(_) => self.metrics.store.failed(name, "failed"),
        }
        result
    }

    /// Appends to logs, and counts the events.
    pub async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let appended = self.call("append", |store| store.append(batches)).await?;
        self.metrics
            .store
            .appended(batches.len(), batches.iter().map(|batch| batch.events.len()).sum());
        Ok(appended)
    }

    pub fn files(&self, options: FileOptions) -> Option<Files> {
        Files::from_store(&self.store, options)
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub fn shared(&self) -> Option<&dyn SharedStore> {
        self.store.shared()
    }
}
