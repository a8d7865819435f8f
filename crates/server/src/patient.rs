//! Connections that are given up if the peer takes nothing.
//!
//! An answer that nobody reads would hold its connection, and its memory, for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How long the peer may take nothing of what is written to it.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A stream of which a write fails if it does not come forward for [`PATIENCE`].
pub struct Patient<S> {
    stream: S,
    writing: Deadline,
    /// Of its own: a plain socket has nothing to flush, also while a write waits.
    flushing: Deadline,
}

/// When something that waits is given up.
#[derive(Default)]
struct Deadline(Option<Pin<Box<Sleep>>>);

impl Deadline {
    /// Returns what was tried, unless it has waited too long.
    fn within<T>(&mut self, context: &mut Context<'_>, tried: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.0 = None;
            return tried;
        }
        let deadline = self.0.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S> Patient<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, writing: Deadline::default(), flushing: Deadline::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.writing.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.writing.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.flushing.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let closed = Pin::new(&mut self.stream).poll_shutdown(context);
        self.flushing.within(context, closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_given_up() {
        let (stream, mut peer) = duplex(8);
        let mut stream = Patient::new(stream);
        let began = Instant::now();
        // Slow is fine, as long as it takes something.
        let reader = tokio::spawn(async move {
            for _ in 0..4 {
                tokio::time::sleep(PATIENCE * 9 / 10).await;
                peer.read_exact(&mut [0; 8]).await.unwrap();
            }
            peer
        });
        stream.write_all(&[1; 40]).await.unwrap();
        assert!(began.elapsed() > PATIENCE * 3);
        let _peer = reader.await.unwrap();
        let error = stream.write_all(b"more").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
