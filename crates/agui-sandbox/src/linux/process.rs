//! Runs one command in its sandbox, within the limits on time, memory and workspace.

use std::{
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

use super::{
    super::SandboxOptions,
    cgroup::CommandCgroup,
    usage::{self, ExceededLimit},
};
use agui_base::deadline;

const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
    Exited(ExitStatus),
    TimedOut,
    Exceeded(ExceededLimit),
}

#[derive(Debug)]
pub(super) struct CommandOutput {
    pub(super) end: CommandEnd,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) truncated: bool,
}

/// Runs a command, and keeps at most `max_output_bytes` of its output. A full `growing` workspace
/// ends it. Dropping the future kills all processes in its sandbox.
pub(super) async fn run(
    process: std::process::Command,
    input: Option<String>,
    growing: Option<&Path>,
    cgroup: Option<&CommandCgroup>,
    max_output_bytes: usize,
    options: &SandboxOptions,
) -> io::Result<CommandOutput> {
    let deadline = deadline::deadline(Instant::now(), options.timeout);
    let mut process = Command::from(process);
    process.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    process.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = process.spawn()?;
    let (mut stdout, mut stderr) =
        (Capture::new(max_output_bytes), Capture::new(options.max_output_bytes));
    let stdin = child.stdin.take();
    let out = child.stdout.take();
    let err = child.stderr.take();
    let id = child.id();
    let end = {
        let pipes = async {
            tokio::join!(write_input(stdin, input), stdout.read(out), stderr.read(err));
        };
        let mut pipes = std::pin::pin!(pipes);
        let mut are_pipes_open = true;
        let mut exceeded = std::pin::pin!(usage::exceeded(id, growing, cgroup, options));
        let end = loop {
            tokio::select! {
                () = &mut pipes, if are_pipes_open => are_pipes_open = false,
                status = child.wait() => break CommandEnd::Exited(status?),
                limit = &mut exceeded => break CommandEnd::Exceeded(limit),
                () = sleep_until(deadline) => break CommandEnd::TimedOut,
            }
        };
        if !matches!(end, CommandEnd::Exited(_)) {
            // This kills bubblewrap, and the kernel then kills everything in its PID namespace.
            child.kill().await?;
        }
        if are_pipes_open {
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, pipes).await;
        }
        match end {
            CommandEnd::Exited(_) if cgroup.is_some_and(CommandCgroup::is_out_of_memory) => {
                CommandEnd::Exceeded(ExceededLimit::Memory)
            }
            end => end,
        }
    };
    let truncated = stdout.truncated || stderr.truncated;
    Ok(CommandOutput { end, stdout: stdout.kept, stderr: stderr.kept, truncated })
}

async fn write_input(stdin: Option<ChildStdin>, input: Option<String>) {
    let (Some(mut stdin), Some(input)) = (stdin, input) else { return };
    // A command that does not read its input is not an error.
    let _ = stdin.write_all(input.as_bytes()).await;
    let _ = stdin.shutdown().await;
}

/// The beginning of an output. The rest is read, too, because a command stops at a full pipe.
struct Capture {
    kept: Vec<u8>,
    limit: usize,
    truncated: bool,
}

impl Capture {
    fn new(limit: usize) -> Self {
        Self { kept: Vec::new(), limit, truncated: false }
    }

    async fn read(&mut self, from: Option<impl AsyncRead + Unpin>) {
        let Some(mut from) = from else { return };
        let mut piece = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = from.read(&mut piece).await {
            let space = self.limit - self.kept.len();
            self.truncated |= read > space;
            self.kept.extend_from_slice(&piece[..read.min(space)]);
        }
    }
}
