//! The thread that writes recordings. It takes work from a queue whose size in bytes is bounded.

use std::{
    fmt, io,
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
use crate::recording::{RecordingEnd, line};

/// The bytes that wait to be written, for all recordings together. Beyond it, recordings are cut.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// The time that a shutdown waits for the disk.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes recordings into a folder. Clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub struct RecordingWriter {
    queue: Sender<WriterJob>,
    shared: Arc<WriterShared>,
}

struct WriterShared {
    options: RecordOptions,
    next: AtomicU64,
    queued_bytes: AtomicUsize,
}

/// A job of the thread.
struct WriterJob {
    file: Arc<str>,
    /// The bytes that wait until the job is done.
    cost: usize,
    work: WriterWork,
}

/// Returns whether the recording is complete.
type WriterWork = Box<dyn FnOnce(&mut RecordingFolder, &Arc<str>) -> io::Result<bool> + Send>;

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingWriter")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

impl RecordingWriter {
    /// Opens the folder of the options and starts the thread. Returns `None` if the options name no folder.
    ///
    /// # Errors
    /// The folder cannot be created, read or written.
    pub fn open(options: &RecordOptions) -> io::Result<Option<Self>> {
        let Some(path) = &options.dir else { return Ok(None) };
        let folder = RecordingFolder::open(path, options.clone())?;
        let (queue, jobs) = mpsc::channel();
        let shared = Arc::new(WriterShared {
            options: options.clone(),
            next: AtomicU64::new(0),
            queued_bytes: AtomicUsize::new(0),
        });
        let writer = Self { queue, shared: shared.clone() };
        thread::Builder::new()
            .name("recordings".to_owned())
            .spawn(move || run_jobs(folder, &shared, &jobs))?;
        Ok(Some(writer))
    }

    /// Waits until everything so far is written, but no longer than 10 s.
    pub async fn flush(&self) {
        let (done, written) = oneshot::channel();
        self.send(&"".into(), 0, move |_, _| {
            // The receiver may have timed out.
            let _ = done.send(());
            Ok(false)
        });
        // An error means that the thread has ended.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, written).await;
    }

    pub(super) fn options(&self) -> &RecordOptions {
        &self.shared.options
    }

    pub(super) fn new_file(&self, started_at: i64, thread: &str, run: &str) -> Arc<str> {
        file_name(started_at, thread, run, self.shared.next.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Begins a recording. `head` makes its first line, on the thread; it keeps about `cost` bytes in memory. Returns whether
    /// there was space for them.
    pub(super) fn create(
        &self,
        file: &Arc<str>,
        cost: usize,
        head: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> bool {
        self.send(file, cost, move |folder, file| folder.create(file, &head()).map(|()| false))
    }

    /// Appends to a recording, as [`create`](Self::create) begins it.
    pub(super) fn append(
        &self,
        file: &Arc<str>,
        cost: usize,
        lines: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> bool {
        self.send(file, cost, move |folder, file| folder.append(file, &lines()).map(|()| false))
    }

    /// Ends a recording. There is always space for an end.
    pub(super) fn finish(&self, file: &Arc<str>, mut end: RecordingEnd, ms: u64) {
        self.send(file, 0, move |folder, file| {
            end.cut |= folder.is_cut(file);
            folder.finish(file, &line(ms, "end", &end))
        });
    }

    fn send(
        &self,
        file: &Arc<str>,
        cost: usize,
        work: impl FnOnce(&mut RecordingFolder, &Arc<str>) -> io::Result<bool> + Send + 'static,
    ) -> bool {
        let queued = self.shared.queued_bytes.fetch_add(cost, Ordering::Relaxed);
        if cost > 0 && queued + cost > MAX_QUEUED_BYTES {
            self.shared.queued_bytes.fetch_sub(cost, Ordering::Relaxed);
            return false;
        }
        self.queue.send(WriterJob { file: file.clone(), cost, work: Box::new(work) }).is_ok()
    }
}

fn run_jobs(mut folder: RecordingFolder, shared: &WriterShared, jobs: &Receiver<WriterJob>) {
    // True if no recording was completed since a failure. Only the first of several failures is
    // logged.
    let mut has_failed = false;
    while let Ok(WriterJob { file, cost, work }) = jobs.recv() {
        match work(&mut folder, &file) {
            // A recording that failed before has no end, so its end says nothing about the disk.
            Ok(is_complete) => has_failed &= !is_complete,
            Err(error) => {
                folder.remove(&file);
                if !std::mem::replace(&mut has_failed, true) {
                    let folder = folder.path.display();
                    tracing::error!(%error, %folder, "cannot write a recording; runs continue without");
                }
            }
        }
        shared.queued_bytes.fetch_sub(cost, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_waits_for_the_disk_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let writer = RecordingWriter::open(&RecordOptions::to(folder.path())).unwrap().unwrap();
        let file = writer.new_file(0, "t", "r");
        let (resume, paused) = mpsc::channel::<()>();
        let head = move || {
            let _ = paused.recv();
            b"{}\n".to_vec()
        };
        assert!(writer.create(&file, 1, head));
        let append = || writer.append(&file, MAX_QUEUED_BYTES / 2, || b"\n".to_vec());
        assert!(append());
        assert!(!append(), "with the head, this would be one byte too many");
        let end = RecordingEnd { outcome: "finished".to_owned(), cut: true, usage: Vec::new() };
        writer.finish(&file, end, 5);
        resume.send(()).unwrap();
        writer.flush().await;
        let whole = std::fs::read_to_string(folder.path().join(format!("{file}.jsonl"))).unwrap();
        assert!(whole.contains("finished"), "an end is never left out: {whole}");
        assert!(append(), "what is written does not count");
    }
}
