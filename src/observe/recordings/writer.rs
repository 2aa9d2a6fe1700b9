//! The thread that writes recordings. It is given work by a queue whose size in bytes is bounded.

use std::{
    fmt, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    folder::{RecordingFolder, file_name},
    options::RecordOptions,
};
use crate::protocol::recording::{RecordingEnd, line};

/// The bytes that wait to be written, for all recordings together. Beyond it, recordings are cut.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// The time that a shutdown waits for the disk.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes recordings into a folder. Clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct RecordingWriter {
    queue: Sender<WriterMessage>,
    shared: Arc<WriterShared>,
}

struct WriterShared {
    options: RecordOptions,
    next: AtomicU64,
    queued_bytes: AtomicUsize,
}

pub(super) enum WriterMessage {
    Create { file: Arc<str>, head: DeferredLine, cost: usize },
    Append { file: Arc<str>, lines: Vec<u8> },
    Defer { file: Arc<str>, line: DeferredLine, cost: usize },
    Finish { file: Arc<str>, end: RecordingEnd, ms: u64 },
    Flush(oneshot::Sender<()>),
}

/// Makes a line on the writer's thread.
pub(super) type DeferredLine = Box<dyn FnOnce() -> Vec<u8> + Send>;

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl RecordingWriter {
    /// Opens the folder of the options and starts the thread. Returns `None` if the options name no folder.
    ///
    /// # Errors
    /// The folder cannot be created, read or written.
    pub(crate) fn open(options: &RecordOptions) -> io::Result<Option<Self>> {
        let Some(path) = &options.dir else { return Ok(None) };
        Self::start(path, options).map(Some)
    }

    fn start(path: &Path, options: &RecordOptions) -> io::Result<Self> {
        let folder = RecordingFolder::open(path, options.clone())?;
        let (queue, messages) = mpsc::channel();
        let shared = Arc::new(WriterShared {
            options: options.clone(),
            next: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
        });
        let writer = WriterThread { folder, shared: shared.clone(), has_failed: false };
        thread::Builder::new().name("recordings".to_owned()).spawn(move || writer.run(&messages))?;
        Ok(Self { queue, shared })
    }

    /// Waits until everything so far is written, for at most 10 s.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.send(WriterMessage::Flush(done)).is_ok() {
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
        }
    }

    pub(super) fn options(&self) -> &RecordOptions {
        &self.shared.options
    }

    pub(super) fn new_file(&self, started_at: i64, thread: &str, run: &str) -> Arc<str> {
        file_name(started_at, thread, run, self.shared.next.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Returns whether there was room for the message.
    pub(super) fn send(&self, message: WriterMessage) -> bool {
        let cost = message.cost();
        let queued = self.shared.queued_bytes.fetch_add(cost, Ordering::Relaxed);
        if queued + cost > MAX_QUEUED_BYTES && !matches!(message, WriterMessage::Finish { .. }) {
            self.shared.queued_bytes.fetch_sub(cost, Ordering::Relaxed);
            return false;
        }
        self.queue.send(message).is_ok()
    }
}

impl WriterMessage {
    fn cost(&self) -> usize {
        match self {
            Self::Create { cost, .. } | Self::Defer { cost, .. } => *cost,
            Self::Append { lines, .. } => lines.len(),
            Self::Finish { .. } | Self::Flush(_) => 0,
        }
    }
}

struct WriterThread {
    folder: RecordingFolder,
    shared: Arc<WriterShared>,
    /// Whether no recording was completed since a failure. Only the first of several failures is logged.
    has_failed: bool,
}

impl WriterThread {
    fn run(mut self, messages: &Receiver<WriterMessage>) {
        while let Ok(message) = messages.recv() {
            let cost = message.cost();
            self.write(message);
            self.shared.queued_bytes.fetch_sub(cost, Ordering::Relaxed);
        }
    }

    fn write(&mut self, message: WriterMessage) {
        let (file, result) = match message {
            WriterMessage::Flush(done) => {
                // The one that waits may have given up.
                let _ = done.send(());
                return;
            }
            WriterMessage::Create { file, head, .. } => {
                let result = self.folder.create(&file, &head());
                (file, result)
            }
            WriterMessage::Append { file, lines } => {
                let result = self.folder.append(&file, &lines);
                (file, result)
            }
            WriterMessage::Defer { file, line, .. } => {
                let result = self.folder.append(&file, &line());
                (file, result)
            }
            WriterMessage::Finish { file, mut end, ms } => {
                end.cut |= self.folder.is_cut(&file);
                let result = self.folder.finish(&file, &line(ms, "end", &end));
                // A recording that failed before has no end, and tells nothing.
                self.has_failed &= !matches!(result, Ok(true));
                (file, result.map(drop))
            }
        };
        if let Err(error) = result {
            self.folder.remove(&file);
            if !std::mem::replace(&mut self.has_failed, true) {
                let folder = self.shared.options.dir.as_deref().unwrap_or(Path::new(""));
                tracing::error!(%error, folder = %folder.display(), "cannot write a recording; runs continue without");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_for_the_disk_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let writer = RecordingWriter::start(folder.path(), &RecordOptions::default()).unwrap();
        let file = writer.new_file(0, "t", "r");
        let (resume, paused) = mpsc::channel::<()>();
        let head = Box::new(move || {
            let _ = paused.recv();
            b"{}\n".to_vec()
        });
        assert!(writer.send(WriterMessage::Create { file: file.clone(), head, cost: 1 }));
        let append = || WriterMessage::Append { file: file.clone(), lines: vec![b'\n'; MAX_QUEUED_BYTES / 2] };
        assert!(writer.send(append()));
        assert!(!writer.send(append()), "with the head, this would be one byte too many");
        let end = RecordingEnd { outcome: "finished".to_owned(), cut: true, usage: Vec::new() };
        assert!(writer.send(WriterMessage::Finish { file: file.clone(), end, ms: 5 }), "an end is never left out");
        resume.send(()).unwrap();
        writer.flush().await;
        assert!(writer.send(append()), "what is written does not count");
    }
}
