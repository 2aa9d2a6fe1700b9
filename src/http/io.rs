//! A connection whose client has to read.
//!
//! A client that stops reading stops its run as well: that is backpressure, and wanted. But one that
//! never reads again would keep the run, and its right to run, for ever; nothing above the socket
//! notices, because nothing above it is polled.

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

/// Fails a write that makes no progress for too long.
pub(super) struct StallLimit<T> {
    io: T,
    limit: Duration,
    /// Armed while a write waits for the client.
    stalled: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl<T> StallLimit<T> {
    pub(super) fn new(io: T, limit: Duration) -> Self {
        Self { io, limit, stalled: None, waiting: false }
    }

    /// Passes a write's result on, and keeps the time while there is none.
    fn watch<R>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if result.is_ready() {
            self.waiting = false;
            return result;
        }
        let deadline = || Instant::now() + self.limit;
        let stalled = match &mut self.stalled {
            Some(stalled) => {
                if !self.waiting {
                    stalled.as_mut().reset(deadline());
                }
                stalled
            }
            none => none.insert(Box::pin(tokio::time::sleep_until(deadline()))),
        };
        self.waiting = true;
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for StallLimit<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for StallLimit<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
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
    async fn a_write_nobody_reads_fails_after_the_limit() {
        let (writer, _reader) = tokio::io::duplex(8);
        let mut writer = StallLimit::new(writer, Duration::from_secs(5));
        let started = Instant::now();
        let error = writer.write_all(&[0; 16]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(started.elapsed().as_secs(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_waited_for() {
        let (writer, mut reader) = tokio::io::duplex(8);
        let mut writer = StallLimit::new(writer, Duration::from_secs(5));
        let read = tokio::spawn(async move {
            let mut byte = [0; 8];
            for _ in 0..8 {
                tokio::time::sleep(Duration::from_secs(4)).await;
                reader.read_exact(&mut byte).await.unwrap();
            }
        });
        writer.write_all(&[0; 64]).await.unwrap();
        read.await.unwrap();
    }
}
