//! The process of an MCP server.
//!
//! Its environment has the [`INHERITED`] variables and the options' variables, so it lacks this
//! server's keys. It leads a process group, so that its own children end with it: `npx` runs a
//! shell that runs node. Its stderr goes to the log at level `debug`; the last lines are kept for
//! the error when it ends.

use std::{collections::VecDeque, io, sync::Arc, time::Duration};

use parking_lot::Mutex;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

use agui_base::text::shortened;

const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SystemRoot",
    "TEMP",
    "TMP",
];
const MAX_LINE_BYTES: usize = 2000;
const STDERR_TAIL_LINES: usize = 5;
const STDERR_TAIL_CHARS: usize = 200;
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// A running process. Dropping this kills the process and its children.
pub(super) struct ServerProcess {
    process: Box<dyn ChildWrapper>,
    log: JoinHandle<()>,
    stderr_tail: Arc<Mutex<VecDeque<String>>>,
}

#[cfg(unix)]
fn lead_group(command: &mut CommandWrap) {
    command.wrap(ProcessGroup::leader());
}

#[cfg(not(unix))]
fn lead_group(_: &mut CommandWrap) {}

impl ServerProcess {
    pub(super) fn spawn(
        server: &str,
        program: &str,
        arguments: &[String],
        environment: &[(String, String)],
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        use std::process::Stdio;
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut command = CommandWrap::from(command);
        lead_group(&mut command);
        let mut process = command.spawn()?;
        let pipes = (process.stdin().take(), process.stdout().take(), process.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the process has no pipes"));
        };
        tracing::debug!(server, pid = process.id(), "started the MCP server");
        let stderr_tail = Arc::new(Mutex::new(VecDeque::new()));
        let log = tokio::spawn(log_lines(server.to_owned(), stderr, stderr_tail.clone()));
        Ok((Self { process, log, stderr_tail }, stdout, stdin))
    }

    /// Returns the last lines of stderr for the end of an error; an empty text if there are none.
    pub(super) fn stderr_note(&self) -> String {
        let lines = Vec::from(self.stderr_tail.lock().clone());
        if lines.is_empty() {
            String::new()
        } else {
            format!("; its last lines on stderr: {}", lines.join(" | "))
        }
    }

    /// Waits up to [`EXIT_TIMEOUT`] for the end of the process, and then kills its group. The caller must have closed
    /// the process's stdin, which makes MCP servers end.
    pub(super) async fn end(&mut self) {
        // `inner_mut` is the process alone; the wrapper would wait for the whole group in a thread.
        if timeout(EXIT_TIMEOUT, self.process.inner_mut().wait()).await.is_err() {
            tracing::debug!("the MCP server did not end after its stdin was closed, and is killed");
        }
        let _ = self.process.start_kill();
        let _ = timeout(EXIT_TIMEOUT, self.process.inner_mut().wait()).await;
        // A process that left the group can keep stderr open.
        let _ = timeout(STDERR_TIMEOUT, &mut self.log).await;
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.start_kill();
        self.log.abort();
    }
}

/// Logs the lines of stderr. Holds at most [`MAX_LINE_BYTES`] of a line in memory.
async fn log_lines(server: String, stderr: ChildStderr, tail: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        let (read, complete) = match reader.fill_buf().await {
            Ok(bytes) if !bytes.is_empty() => {
                let newline = bytes.iter().position(|byte| *byte == b'\n');
                let end = newline.unwrap_or(bytes.len());
                line.extend_from_slice(
                    &bytes[..end.min(MAX_LINE_BYTES.saturating_sub(line.len()))],
                );
                (newline.map_or(bytes.len(), |newline| newline + 1), newline.is_some())
            }
            _ => return,
        };
        reader.consume(read);
        if complete {
            // Control characters could forge log lines or colour the operator's terminal.
            let text = String::from_utf8_lossy(&line).replace(char::is_control, " ");
            if !text.trim().is_empty() {
                tracing::debug!(server, "{}", text.trim_end());
                let mut tail = tail.lock();
                tail.push_back(shortened(text.trim(), STDERR_TAIL_CHARS));
                if tail.len() > STDERR_TAIL_LINES {
                    tail.pop_front();
                }
            }
            line.clear();
        }
    }
}
