//! A server that plays long and idle streams, as a child process, and its values in `/proc`.

use std::{fs, process::Command, time::Duration};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    time::timeout,
};

use crate::support::server::Process;

pub(crate) const MEGABYTE: usize = 1024 * 1024;
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// The beginning of the head of a run's request.
pub(crate) const HEAD: &str =
    "POST /send-message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

const CONFIG: &str = r#"
[server]
drain_secs = 0
# Or the server is never idle, if the streams take longer than the interval to begin.
keep_alive_secs = 600
[runs]
max_concurrent = 20000
[agents.load]
kind = "script"
script = "load.toml"
"#;
const SCRIPT: &str = r#"
[[answer]]
when.user = "burst"
play = [{ count = "1000000", most = 1000000, every_ms = 0 }]
[[answer]]
when.user = "log"
play = [{ count = "200000", most = 200000, every_ms = 0 }]
[[answer]]
when.user = "idle"
play = [{ text = "Just a moment" }, { wait_ms = 600000 }]
[[answer]]
play = [{ text = "Hello" }]
"#;

pub(crate) struct LoadServer {
    pub(crate) process: Process,
    _files: tempfile::TempDir,
}

impl LoadServer {
    /// Starts the server, with as many open files as this machine gives a process, which must be enough for the
    /// connections.
    pub(crate) fn start(connections: usize) -> Self {
        let files = rlimit::increase_nofile_limit(u64::MAX).unwrap();
        assert!(
            files > connections as u64 + 1000,
            "this machine gives a process no more than {files} open files"
        );
        let files = tempfile::tempdir().unwrap();
        let config = files.path().join("load-config.toml");
        fs::write(&config, CONFIG).unwrap();
        fs::write(files.path().join("load.toml"), SCRIPT).unwrap();
        let log = "error,agui_server::http::accept::serve=info,agui_server::server=info";
        let arguments = ["--config", config.to_str().unwrap(), "--log", log];
        let process = match std::env::var("AGUI_SERVER_BINARY") {
            Ok(binary) => {
                Process::launch(Command::new(binary), tempfile::tempdir().unwrap(), &arguments, &[])
            }
            Err(_) => Process::start(&arguments, &[]),
        };
        Self { process, _files: files }
    }

    /// Connects with small buffers, so that sent data are in the server's memory and not in the
    /// kernel's.
    pub(crate) async fn connect(&self) -> TcpStream {
        let address = self.process.url.strip_prefix("http://").unwrap().parse().unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        socket.set_send_buffer_size(32 * 1024).unwrap();
        timeout(TEST_TIMEOUT, socket.connect(address)).await.unwrap().unwrap()
    }

    /// Starts a run on a thread of its own.
    pub(crate) async fn begin_run(&self, text: &str) -> TcpStream {
        let thread = uuid::Uuid::new_v4().to_string();
        let message = json!({ "id": "m", "role": "user", "content": text });
        let body = json!({ "threadId": thread, "runId": "r", "messages": [message] }).to_string();
        let mut stream = self.connect().await;
        stream
            .write_all(format!("{HEAD}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .await
            .unwrap();
        stream
    }

    /// Starts a run and reads its response up to the text `until`.
    pub(crate) async fn run(&self, text: &str, until: &str) -> TcpStream {
        let mut stream = self.begin_run(text).await;
        let (mut answer, mut piece) = (Vec::new(), [0; 1024]);
        while !String::from_utf8_lossy(&answer).contains(until) {
            let read = timeout(TEST_TIMEOUT, stream.read(&mut piece)).await.expect(until).unwrap();
            assert_ne!(read, 0, "the answer ended before {until}");
            answer.extend_from_slice(&piece[..read]);
        }
        stream
    }

    /// Returns a member of the server's `/proc/…/status`, such as `VmRSS`, in bytes.
    pub(crate) fn memory(&self, member: &str) -> usize {
        let status = self.read_proc("status");
        let line =
            status.lines().find_map(|line| line.strip_prefix(member)?.strip_prefix(':')).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
    }

    /// Waits until the server uses less than 30 ms of processor time in 500 ms. An idle server announces no event, so this
    /// has to poll.
    pub(crate) async fn wait_until_idle(&self) {
        let mut before = self.cpu_ticks();
        timeout(TEST_TIMEOUT, async {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                let now = self.cpu_ticks();
                if now < before + 3 {
                    break;
                }
                before = now;
            }
        })
        .await
        .expect("the server is never idle");
    }

    /// Returns the processor time of the server, in ticks of 10 ms.
    fn cpu_ticks(&self) -> u64 {
        let stat = self.read_proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    fn read_proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process.child.id())).unwrap()
    }
}
