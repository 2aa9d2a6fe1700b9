//! Polling with a deadline, for states that announce no event.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longer than any state of these tests takes to be reached.
const TIMEOUT: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(10);

/// Calls `probe` until it returns a value. Panics after the deadline with the state that `what` names.
pub(crate) async fn poll_until<T>(what: &str, probe: impl AsyncFnMut() -> Option<T>) -> T {
    poll_within(TIMEOUT, what, probe).await
}

/// The same with a time limit of its own.
pub(crate) async fn poll_within<T>(
    limit: Duration,
    what: &str,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < deadline, "not reached in {limit:?}: {what}");
        sleep(INTERVAL).await;
    }
}
