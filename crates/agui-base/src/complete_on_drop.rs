//! A future that runs to completion even if its caller drops it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Spawns a task only when it is dropped, which saves a task for nearly every run. The output is then dropped.
pub struct CompleteOnDrop<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> CompleteOnDrop<F> {
    pub fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for CompleteOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Taken out, so that a future that panics is not polled again on drop.
        let Some(mut future) = self.0.take() else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.0 = Some(future);
        }
        polled
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for CompleteOnDrop<F> {
    fn drop(&mut self) {
        let Some(future) = self.0.take() else { return };
        // Without a runtime the process is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(future);
        }
    }
}
