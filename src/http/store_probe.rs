//! Probes of the store for `GET /readyz`, which needs no credential. All requests of a second share
//! one probe.

use std::time::Duration;

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use agui_store::StoreError;

/// A store that takes longer is reported as unavailable.
const PROBE_TIMEOUT: Duration = Duration::from_millis(800);
/// Longer than [`PROBE_TIMEOUT`], so that there is at most one probe at a time.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(crate) struct StoreProbe(Mutex<Option<LastProbe>>);

struct LastProbe {
    begin: Instant,
    state: Shared<BoxFuture<'static, StoreState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreState {
    Available,
    DiskFull,
    Unavailable,
}

impl StoreProbe {
    /// Returns the result of the last probe, which is at most a second old. Without such a result,
    /// `check` is the next probe.
    pub(crate) async fn state<F>(&self, check: impl FnOnce() -> F) -> StoreState
    where
        F: Future<Output = Result<(), StoreError>> + Send + 'static,
    {
        let state = {
            let mut last = self.0.lock();
            match &*last {
                Some(last) if last.begin.elapsed() < PROBE_INTERVAL => last.state.clone(),
                _ => {
                    // A task, so that the probe continues if the client leaves.
                    let probe = tokio::spawn(probe(check()));
                    let state = async move { probe.await.unwrap_or(StoreState::Unavailable) }
                        .boxed()
                        .shared();
                    last.insert(LastProbe { begin: Instant::now(), state }).state.clone()
                }
            }
        };
        state.await
    }
}

async fn probe(check: impl Future<Output = Result<(), StoreError>>) -> StoreState {
    match timeout(PROBE_TIMEOUT, check).await {
        Ok(Ok(())) => return StoreState::Available,
        Ok(Err(error)) => {
            tracing::warn!(?error, "the store is not available");
            if error.is_disk_full() {
                return StoreState::DiskFull;
            }
        }
        Err(_) => tracing::warn!(
            "the store is not available: a write takes longer than {PROBE_TIMEOUT:?}"
        ),
    }
    StoreState::Unavailable
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures::future::join_all;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_requests_of_a_second_share_one_probe() {
        let (probe, begun) = (StoreProbe::default(), Mutex::new(0));
        let check = || {
            *begun.lock() += 1;
            async { Ok(()) }
        };
        assert_eq!(
            join_all((0..100).map(|_| probe.state(check))).await,
            [StoreState::Available; 100]
        );
        assert_eq!(*begun.lock(), 1);
        tokio::time::advance(PROBE_INTERVAL).await;
        assert_eq!(probe.state(check).await, StoreState::Available);
        assert_eq!(*begun.lock(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_respond_is_unavailable_in_time() {
        let (probe, begin) = (StoreProbe::default(), Instant::now());
        let clients = join_all((0..10).map(|_| probe.state(pending)));
        // Clients that leave do not begin a second probe.
        assert!(timeout(Duration::from_millis(100), probe.state(pending)).await.is_err());
        assert_eq!(clients.await, [StoreState::Unavailable; 10]);
        assert_eq!(begin.elapsed(), PROBE_TIMEOUT);
    }
}
