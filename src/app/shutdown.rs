//! The signals that end the process.

/// Waits until the process is told to stop: SIGTERM, or Ctrl-C. From the call on, and not only from the first poll, these
/// signals do not end the process by themselves.
///
/// # Panics
/// Outside of a Tokio runtime.
pub fn shutdown_signal() -> impl Future<Output = ()> + Send {
    #[cfg(unix)]
    let signals = {
        use tokio::signal::unix::{SignalKind, signal};
        signal(SignalKind::terminate()).and_then(|terminate| Ok((terminate, signal(SignalKind::interrupt())?)))
    };
    #[cfg(not(unix))]
    let ctrl_c = tokio::signal::ctrl_c();
    async move {
        #[cfg(unix)]
        match signals {
            Ok((mut terminate, mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            }
            Err(error) => {
                tracing::error!(%error, "cannot wait for signals");
                std::future::pending::<()>().await;
            }
        }
        #[cfg(not(unix))]
        if ctrl_c.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
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
