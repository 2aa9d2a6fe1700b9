//! The store of a server, and the metrics of its operations.

use std::sync::Arc;

use crate::{
    files::{FileOptions, Files},
    observe::metrics::Metrics,
    store::{EventBatch, SharedStore, Store, StoreError},
};

/// Measures the operations of a store. Those of [`SharedStore`] are not measured.
#[derive(Clone)]
pub(crate) struct MeasuredStore {
    pub(crate) store: Arc<dyn Store>,
    metrics: Metrics,
}

impl MeasuredStore {
    pub(crate) fn new(store: Arc<dyn Store>, metrics: Metrics) -> Self {
        Self { store, metrics }
    }

    /// Runs an operation, and measures it under this name.
    pub(crate) async fn call<'s, T, F>(
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
            // A lost lease is no failure of the store.
            Ok(_) | Err(StoreError::LeaseLost) => {}
            Err(StoreError::Unavailable(_)) => self.metrics.store.failed(name, "unavailable"),
            Err(StoreError::Failed(_)) => self.metrics.store.failed(name, "failed"),
        }
        result
    }

    /// Appends to logs, and counts the events.
    pub(crate) async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let appended = self.call("append", |store| store.append(batches)).await?;
        self.metrics
            .store
            .appended(batches.len(), batches.iter().map(|batch| batch.events.len()).sum());
        Ok(appended)
    }

    pub(crate) fn files(&self, options: FileOptions) -> Option<Files> {
        Files::of(&self.store, options)
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn shared(&self) -> Option<&dyn SharedStore> {
        self.store.shared()
    }
}
