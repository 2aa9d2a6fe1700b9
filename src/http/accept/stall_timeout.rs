//! A time limit for clients that do not read.
//!
//! Such a client pauses its run, which is intended, but would keep the run and its permit for ever. Nothing above the
//! socket is polled then, so the limit is at the socket.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

use agui_base::deadline;
use agui_observe::metrics::Metrics;

/// A client that lets a write wait for this long is slow.
const SLOW_WRITE: Duration = Duration::from_secs(1);

pub(crate) struct StallTimeout<T> {
    io: T,
    limit: Duration,
    metrics: Metrics,
    /// Kept for the next write.
    timer: Option<Pin<Box<Sleep>>>,
    is_waiting: bool,
}

impl<T> StallTimeout<T> {
    pub(crate) fn new(io: T, limit: Duration, metrics: Metrics) -> Self {
        Self { io, limit, metrics, timer: None, is_waiting: false }
    }

    fn watch<R>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if result.is_ready() {
            if self.is_waiting {
                self.is_waiting = false;
                self.count_if_slow();
            }
            return result;
        }
        let deadline = || deadline::deadline(Instant::now(), self.limit);
        let timer = match &mut self.timer {
            Some(timer) => {
                if !self.is_waiting {
                    timer.as_mut().reset(deadline());
                }
                timer
            }
            none => none.insert(Box::pin(tokio::time::sleep_until(deadline()))),
        };
        self.is_waiting = true;
        match timer.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client does not read",
            ))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn count_if_slow(&self) {
        // The timer was set when the write began to wait.
        let waited = self.timer.as_ref().map(|timer| {
            deadline::deadline(Instant::now(), self.limit).duration_since(timer.deadline())
        });
        if waited.is_some_and(|waited| waited >= SLOW_WRITE) {
            self.metrics.http.slow_writes.inc();
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for StallTimeout<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for StallTimeout<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write(cx, buf);
        self.watch(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.watch(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.io).poll_flush(cx);
        self.watch(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_is_not_read_fails_after_the_limit() {
        let (writer, _reader) = tokio::io::duplex(8);
        let mut writer = StallTimeout::new(writer, Duration::from_secs(5), Metrics::default());
        let started = Instant::now();
        let error = writer.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_not_disconnected() {
        let (writer, mut reader) = tokio::io::duplex(8);
        let metrics = Metrics::default();
        let mut writer = StallTimeout::new(writer, Duration::from_secs(5), metrics.clone());
        let read = tokio::spawn(async move {
            let mut byte = [0; 8];
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(4)).await;
                reader.read_exact(&mut byte).await.unwrap();
            }
        });
        writer.write_all(&[0; 64]).await.unwrap();
        read.await.unwrap();
        assert_eq!(metrics.http.slow_writes.get(), 7, "the first eight bytes did not wait");
    }
}
