//! The process of an MCP server that is started by command.
//!
//! It gets an environment of its own: what every program needs, and what the configuration gives it; the keys of this
//! server are not in it. It leads a process group, so that what it starts itself ends with it: `npx` runs a shell
//! that runs node. What it writes to stderr goes to the log; its last words are kept for the day it dies.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, ProcessGroup};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

/// What a process inherits.
const INHERITED: &[&str] =
    &["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SystemRoot", "TEMP", "TMP"];
/// The longest line that is logged, in bytes.
const MAX_LINE: usize = 2000;
/// How many lines are kept.
const LAST_WORDS: usize = 5;
/// How long a process may take to end by itself once its stdin is closed.
const GRACE: Duration = Duration::from_secs(2);

/// A running process. Dropping it kills it, and whatever it has started.
pub(super) struct Child {
    process: Box<dyn ChildWrapper>,
    log: JoinHandle<()>,
    last_words: Arc<Mutex<VecDeque<String>>>,
}

impl Child {
    /// Starts a process.
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
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut command = CommandWrap::from(command);
        #[cfg(unix)]
        command.wrap(ProcessGroup::leader());
        let mut process = command.spawn()?;
        let pipes = (process.stdin().take(), process.stdout().take(), process.stderr().take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the process has no pipes"));
        };
        tracing::debug!(server, pid = process.id(), "started the MCP server");
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let log = tokio::spawn(log_lines(server.to_owned(), stderr, last_words.clone()));
        Ok((Self { process, log, last_words }, stdout, stdin))
    }

    /// What it has written to stderr last.
    pub(super) fn last_words(&self) -> String {
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Waits for it to end by itself for a while, which it does when its stdin is closed, then ends it.
    pub(super) async fn end(mut self) {
        // The process alone; the wrapper would wait for the whole group, in a thread.
        if timeout(GRACE, self.process.inner_mut().wait()).await.is_err() {
            tracing::debug!("an MCP server does not end by itself, and is killed");
        }
        let _ = self.process.start_kill();
        let _ = timeout(GRACE, self.process.inner_mut().wait()).await;
        // What it still has said; others may hold on to its stderr.
        let _ = timeout(GRACE / 10, &mut self.log).await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.start_kill();
        self.log.abort();
    }
}

/// Logs lines of whatever length without ever holding more than the beginning of one.
async fn log_lines(server: String, stderr: ChildStderr, last_words: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        let (read, complete) = match reader.fill_buf().await {
            Ok(bytes) if !bytes.is_empty() => {
                let newline = bytes.iter().position(|byte| *byte == b'\n');
                let end = newline.unwrap_or(bytes.len());
                line.extend_from_slice(&bytes[..end.min(MAX_LINE.saturating_sub(line.len()))]);
                (newline.map_or(bytes.len(), |newline| newline + 1), newline.is_some())
            }
            _ => return,
        };
        reader.consume(read);
        if complete {
            // Nothing in it may look like another line, or colour the operator's terminal.
            let text = String::from_utf8_lossy(&line).replace(char::is_control, " ");
            if !text.trim().is_empty() {
                tracing::debug!(server, "{}", text.trim_end());
                let mut words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
                words.push_back(text.trim().chars().take(200).collect());
                if words.len() > LAST_WORDS {
                    words.pop_front();
                }
            }
            line.clear();
        }
    }
}
