//! The `agui-server` command as a child process.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_agui-server");

/// The longest time that [`Process::ended`] waits for the exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// A running command, which is killed on drop.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) url: String,
    /// The URL of the metrics, if they have a listener of their own.
    pub(crate) metrics_url: Option<String>,
    /// The log since the server listened.
    log: Arc<Mutex<String>>,
    /// Reads the log: a full pipe would block the server.
    log_reader: Option<JoinHandle<()>>,
    _data: tempfile::TempDir,
}

impl Process {
    pub(crate) fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::launch(Command::new(BINARY), tempfile::tempdir().unwrap(), arguments, environment)
    }

    /// Starts another command, to which the arguments are appended.
    pub(crate) fn launch(
        mut command: Command,
        data: tempfile::TempDir,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        if !arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.env("AGUI_SERVER__DATA_DIR", data.path()).args(arguments).env_remove("RUST_LOG");
        let mut child =
            command.envs(environment.iter().copied()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let (mut line, mut metrics_url) = (String::new(), None);
        let url_after = |line: &str, text: &str| {
            line.split(text)
                .nth(1)
                .map(|rest| rest.split(['"', ' ', '\n']).next().unwrap().to_owned())
        };
        let mut starting = String::new();
        while !line.contains("listening on ") {
            line.clear();
            assert_ne!(log.read_line(&mut line).unwrap(), 0, "the server ended: {starting}");
            starting.push_str(&line);
            metrics_url = metrics_url.or(url_after(&line, "serving metrics on "));
        }
        let url = url_after(&line, "listening on ").unwrap();
        let text = Arc::new(Mutex::new(String::new()));
        let written = text.clone();
        let reader = std::thread::spawn(move || {
            for line in log.lines() {
                written.lock().unwrap().push_str(&(line.unwrap() + "\n"));
            }
        });
        Self { child, url, metrics_url, log: text, log_reader: Some(reader), _data: data }
    }

    /// Returns whether the server has logged the text.
    pub(crate) fn has_logged(&self, text: &str) -> bool {
        self.log.lock().unwrap().contains(text)
    }

    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit code, and the log since the server listened.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(10)),
            }
            assert!(Instant::now() < deadline, "the server did not end");
        };
        self.log_reader.take().unwrap().join().unwrap();
        (status.code(), std::mem::take(&mut self.log.lock().unwrap()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
