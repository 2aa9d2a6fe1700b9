//! The signals that end the process.

use std::io;

/// Waits until the process is told to stop: SIGTERM, or Ctrl-C. From the call on, and not only from the first poll, these
/// signals do not end the process by themselves.
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
    use tokio::signal::unix::{SignalKind, signal};
    let signals =
        signal(SignalKind::terminate()).and_then(|terminate| Ok((terminate, signal(SignalKind::interrupt())?)));
    async move {
        let (mut terminate, mut interrupt) = signals?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
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
        let stopped = shutdown_signal();
        let kill = std::process::Command::new("kill").args(["-TERM", &std::process::id().to_string()]).status();
        assert!(kill.unwrap().success());
        stopped.await;
    }
}
