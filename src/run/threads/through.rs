//! Something that, once it has been asked for, must come to its end.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A future that goes on in a task of its own when whoever awaits it leaves. A task from the beginning would cost
/// every run what only those need whose client hangs up in this very moment.
pub(super) struct Through<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> Through<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Through<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Out of its place, so that one that panics is not gone on with.
        let Some(mut future) = self.0.take() else { return Poll::Pending };
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.0 = Some(future);
        }
        polled
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Through<F> {
    fn drop(&mut self) {
        let Some(future) = self.0.take() else { return };
        // Without a runtime the process is about to end, and the next one closes the run.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(future);
        }
    }
}
