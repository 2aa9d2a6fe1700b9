//! The signals that end the process.

use std::io;

/// Waits until the process is told to stop: SIGTERM, Ctrl-C, or SIGHUP of a terminal that is closed. From the call on, and
/// not only from the first poll, these signals do not end the process by themselves.
///
/// # Panics
/// Outside of a Tokio runtime.
pub fn shutdown_signal() -> impl Future<Output = ()> + Send {
    let signalled = signalled();
    async move {
        if let Err(error) = signalled.await {
            tracing::error!(%error, "cannot wait for signals");
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(unix)]
fn signalled() -> impl Future<Output = io::Result<()>> + Send {
    use std::{future::poll_fn, task::Poll};

    use tokio::signal::unix::{SignalKind, signal};

    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let signals: io::Result<Vec<_>> = kinds.into_iter().map(signal).collect();
    async move {
        let mut signals = signals?;
        poll_fn(|cx| {
            let mut received = signals.iter_mut().map(|signal| signal.poll_recv(cx));
            if received.any(|polled| polled.is_ready()) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        Ok(())
    }
}

#[cfg(not(unix))]
fn signalled() -> impl Future<Output = io::Result<()>> + Send {
    tokio::signal::ctrl_c()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_before_the_first_poll_is_not_lost() {
        for name in ["-TERM", "-HUP"] {
            let stopped = shutdown_signal();
            let kill = std::process::Command::new("kill")
                .args([name, &std::process::id().to_string()])
                .status();
            assert!(kill.unwrap().success());
            stopped.await;
        }
    }
}
