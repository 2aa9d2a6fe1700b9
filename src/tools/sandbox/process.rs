//! One command in its sandbox, from its start to its end, however that comes.

use std::{
    ffi::OsString,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{ChildStdin, Command},
    time::{Instant, sleep_until},
};

use super::{SandboxOptions, watch};

/// How long output may still come that the end of the command has left in its pipes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What is to be run.
pub(super) struct Job<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: Vec<OsString>,
    /// What the command is told; nothing if it is not.
    pub(super) input: Option<String>,
    pub(super) workspace: &'a Path,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with a status, or by a signal.
    Itself(ExitStatus),
    /// It took too long.
    TimedOut,
    /// It took too much memory.
    TooMuchMemory,
    /// It wrote too much.
    TooLargeWorkspace,
}

/// What came of a command.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub ended: Ended,
    /// What it said, as far as that is kept.
    pub stdout: Vec<u8>,
    /// What it complained about, as far as that is kept.
    pub stderr: Vec<u8>,
    /// Whether it said more.
    pub truncated: bool,
}

/// Runs a command. Dropping the future kills it, and with it everything in its sandbox.
pub(super) async fn run(job: Job<'_>, options: &SandboxOptions) -> io::Result<Output> {
    let deadline = Instant::now() + options.timeout;
    let mut command = Command::new(job.program);
    command
        .args(&job.arguments)
        // What bubblewrap itself was started with can be seen within, by way of /proc/1.
        .env_clear()
        .stdin(if job.input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let (mut stdout, mut stderr) = (Captured::new(options.max_output), Captured::new(options.max_output));
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let id = child.id();
    let ended = {
        let talk = async {
            tokio::join!(tell(stdin, job.input), stdout.read(out), stderr.read(err));
        };
        let mut talk = std::pin::pin!(talk);
        let mut talking = true;
        let mut watched = std::pin::pin!(watch::exceeded(id, job.workspace, options));
        let ended = loop {
            tokio::select! {
                () = &mut talk, if talking => talking = false,
                status = child.wait() => break Ended::Itself(status?),
                ended = &mut watched => break ended,
                () = sleep_until(deadline) => break Ended::TimedOut,
            }
        };
        if !matches!(ended, Ended::Itself(_)) {
            // Bubblewrap's death is that of everything in the sandbox.
            child.kill().await?;
        }
        if talking {
            let _ = tokio::time::timeout(LAST_WORDS, talk).await;
        }
        ended
    };
    let truncated = stdout.truncated || stderr.truncated;
    Ok(Output { ended, stdout: stdout.kept, stderr: stderr.kept, truncated })
}

async fn tell(stdin: Option<ChildStdin>, input: Option<String>) {
    let (Some(mut stdin), Some(input)) = (stdin, input) else { return };
    // Whoever does not listen is not told; how the command ends says more.
    let _ = stdin.write_all(input.as_bytes()).await;
    let _ = stdin.shutdown().await;
}

/// What a command says: the beginning is kept, the rest is read and forgotten, so that the command can end.
struct Captured {
    kept: Vec<u8>,
    most: usize,
    truncated: bool,
}

impl Captured {
    fn new(most: usize) -> Self {
        Self { kept: Vec::new(), most, truncated: false }
    }

    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut piece = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            let room = self.most - self.kept.len();
            self.truncated |= read > room;
            self.kept.extend_from_slice(&piece[..read.min(room)]);
        }
    }
}
