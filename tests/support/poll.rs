//! Polling with a deadline, for states that announce no event.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longer than any state of these tests takes to be reached.
const DEADLINE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_millis(10);

/// Calls `probe` until it returns a value. Panics after the deadline with the state that `what` names.
pub(crate) async fn poll_until<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(Instant::now() < deadline, "not reached in {DEADLINE:?}: {what}");
        sleep(INTERVAL).await;
    }
}
