//! Notices a server that sends messages in a loop. Each message costs this process time.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// The largest number of notifications and questions in [`WINDOW`].
pub(super) const MAX_MESSAGES: u32 = 10_000;
pub(super) const WINDOW: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct FloodGauge {
    window: Mutex<Option<(Instant, u32)>>,
    /// Notified when the server has sent too many messages.
    pub(super) flooded: Notify,
}

impl FloodGauge {
    pub(super) fn count(&self) {
        let now = Instant::now();
        let mut window = self.window.lock();
        let (begin, messages) =
            window.filter(|(begin, _)| now < *begin + WINDOW).unwrap_or((now, 0));
        *window = Some((begin, messages.saturating_add(1)));
        if messages == MAX_MESSAGES {
            self.flooded.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_many_messages_in_a_short_time_are_a_flood() {
        let gauge = FloodGauge::default();
        for _ in 0..3 {
            (0..MAX_MESSAGES).for_each(|_| gauge.count());
            assert!(gauge.flooded.notified().now_or_never().is_none());
            tokio::time::advance(WINDOW).await;
        }
        (0..=MAX_MESSAGES).for_each(|_| gauge.count());
        assert!(gauge.flooded.notified().now_or_never().is_some());
    }
}
