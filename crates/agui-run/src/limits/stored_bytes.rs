//! The limits of stored bytes, `[retention] max_bytes` and `max_bytes_total`: beyond them, no run
//! begins, no thread is copied, and no file is stored.
//!
//! The bytes are read from the store at most once a minute, and more often near the limit. So most
//! runs need no reading, and writes between two readings can exceed a limit.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::measured_store::MeasuredStore;
use agui_base::refusals;
use agui_store::{Retention, StoreError};

/// The longest time that a reading is used.
const MAX_AGE: Duration = Duration::from_secs(60);
/// A reading is used until the space that was left can be full at this rate, in bytes.
const BYTES_PER_SECOND: u64 = 32 << 20;
/// Above this number of readings, old ones are removed.
const MAX_READINGS: usize = 10_000;

refusals! {
    /// A limit of stored bytes that is reached.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    pub enum StorageLimit {
        /// The limit of one principal.
        #[error("your threads and files have {0} bytes, as many as [retention] max_bytes allows: delete some of them")]
        #[refusal(PAYLOAD_TOO_LARGE, "too_many_stored_bytes", Start, Copy, Upload)]
        Principal(u64),
        /// The limit of all principals.
        #[error("all threads and files of this server have {0} bytes, as many as [retention] max_bytes_total allows")]
        #[refusal(INSUFFICIENT_STORAGE, "storage_full", Start, Copy, Upload)]
        Server(u64),
    }
}

/// The stored bytes of each owner; those of all owners are under `None`.
#[derive(Debug, Default)]
pub struct StoredBytes(Mutex<HashMap<Option<Arc<str>>, Reading>>);

/// Stored bytes, with the time when they were read.
type Reading = (u64, Instant);

impl StoredBytes {
    /// Removes the readings from before a thread of this owner was deleted.
    pub fn forget(&self, owner: &Arc<str>) {
        let mut readings = self.0.lock();
        readings.remove(&Some(owner.clone()));
        readings.remove(&None);
    }

    /// Checks that an owner may store more.
    pub async fn check<E>(
        &self,
        store: &MeasuredStore,
        retention: &Retention,
        owner: &Arc<str>,
    ) -> Result<(), E>
    where
        E: From<StoreError> + From<StorageLimit>,
    {
        let of_all = match retention.bytes {
            Some(u64::MAX) => store.store.capacity(),
            max => max,
        };
        let limits = [
            (
                retention.owner_bytes,
                Some(owner.clone()),
                StorageLimit::Principal as fn(u64) -> StorageLimit,
            ),
            (of_all, None, StorageLimit::Server),
        ];
        for (max, of, exceeded) in limits {
            let Some(max) = max else { continue };
            let bytes = self.read(&of, max, store.stored_bytes(of.as_deref())).await?;
            if bytes >= max {
                return Err(exceeded(bytes).into());
            }
        }
        Ok(())
    }

    /// Returns the last reading, or `reading` if the last one is too old. Other callers use the old
    /// one until the new one is known: to add up 100,000 threads takes 15 ms in SQLite, and each
    /// run that begins meanwhile would do the same.
    async fn read(
        &self,
        of: &Option<Arc<str>>,
        max: u64,
        reading: impl Future<Output = Result<u64, StoreError>>,
    ) -> Result<u64, StoreError> {
        if let Some((bytes, read_at)) = self.0.lock().get_mut(of) {
            let seconds = max.saturating_sub(*bytes) / BYTES_PER_SECOND;
            if read_at.elapsed() < Duration::from_secs(seconds).min(MAX_AGE) {
                return Ok(*bytes);
            }
            *read_at = Instant::now();
        }
        let bytes = reading.await?;
        let readings = &mut *self.0.lock();
        if readings.len() >= MAX_READINGS {
            readings.retain(|_, (_, read_at)| read_at.elapsed() < MAX_AGE);
        }
        readings.insert(of.clone(), (bytes, Instant::now()));
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_old_reading_is_used_while_a_new_one_is_made_unless_the_limit_is_near() {
        const FAR: u64 = 1 << 40;
        let (stored, ann) = (StoredBytes::default(), Some(Arc::from("key:ann")));
        assert_eq!(stored.read(&ann, FAR, ready(Ok(1))).await.unwrap(), 1);
        assert_eq!(stored.read(&ann, FAR, pending()).now_or_never().unwrap().unwrap(), 1);
        advance(MAX_AGE).await;
        let mut slow = Box::pin(stored.read(&ann, FAR, pending()));
        assert!((&mut slow).now_or_never().is_none());
        assert_eq!(stored.read(&ann, FAR, pending()).now_or_never().unwrap().unwrap(), 1);
        assert_eq!(stored.read(&ann, 1, ready(Ok(2))).await.unwrap(), 2);
    }
}
