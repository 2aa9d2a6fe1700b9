//! [`ThreadData`]: data of threads that is kept outside of the store, and removed with them.

use async_trait::async_trait;

use crate::store::{Store, ThreadKey};

/// Data of threads outside of the store, such as files. It is removed with its thread.
#[async_trait]
pub(crate) trait ThreadData: Send + Sync + 'static {
    /// A thread was deleted. A new thread with its key begins without the data once this has returned; one that begins
    /// meanwhile can lose its own.
    async fn thread_deleted(&self, key: &ThreadKey);

    /// Threads may have been removed: at the start, by retention, or by other servers.
    async fn threads_swept(&self, store: &dyn Store);
}
