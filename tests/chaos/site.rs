//! The servers under test: processes, their configuration, their store, and the proxies around them.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, ToSocketAddrs as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{
    client::key,
    dice::Dice,
    proxy::{Proxy, Trouble},
    support::{postgres::Postgres, server::Process},
};

pub(crate) const PRINCIPALS: usize = 3;

const CONFIG: &str = r#"
default_agent = "script"
[server]
drain_secs = 1
[auth]
mode = "api_key"
api_keys = [{ name = "p0", env = "KEY_0" }, { name = "p1", env = "KEY_1" }, { name = "p2", env = "KEY_2" }]
[threads]
lease_secs = 3
[retention]
max_logs = 1000
[agents.script]
kind = "script"
script = "script.toml"
[agents.echo]
kind = "echo"
"#;

const SCRIPT: &str = r#"
[[answer]]
when.replies = "send"
play = [{ result_of = "send", approved = "sent {args.what}", declined = "declined" }, { text = "{results}" }]
[[answer]]
when.user = '^count (?<n>\d+)'
play = [{ count = "{n}", most = 1000, every_ms = 4 }]
[[answer]]
when.user = '^mail (?<what>\S+)'
play = [{ call = "send", args = { what = "{what}" } }, { interrupts = [{ call = "send", message = "Send it?" }] }]
[[answer]]
when.user = '^fail'
play = [{ text = "It fails now" }, { fail = "as asked", code = "asked" }]
[[answer]]
play = [{ text = ["You said: ", "{text}"] }]
"#;

/// The servers, their store, and their proxies.
pub(crate) struct Site {
    pub(crate) servers: Vec<Server>,
    pub(crate) database: Option<Database>,
    /// A small file system below the data folder of the server, if this process may mount one.
    pub(crate) disk: Option<SmallDisk>,
    files: tempfile::TempDir,
}

pub(crate) struct Database {
    pub(crate) postgres: Postgres,
    pub(crate) proxy: Proxy,
}

/// A server that can be replaced by another process. Clients reach it by its proxy.
pub(crate) struct Server {
    process: Option<Process>,
    pub(crate) proxy: Proxy,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Site {
    /// Starts one server with a SQLite file.
    pub(crate) async fn with_sqlite(dice: &mut Dice) -> Self {
        let files = files();
        let data = files.path().join("data");
        fs::create_dir(&data).unwrap();
        let disk = SmallDisk::mount(&data);
        let server =
            Server::start(files.path(), vec![("AGUI_SERVER__DATA_DIR".into(), path(&data))], dice)
                .await;
        Self { servers: vec![server], database: None, disk, files }
    }

    /// Starts two servers that share a Postgres database.
    pub(crate) async fn with_postgres(dice: &mut Dice) -> Option<Self> {
        let (files, postgres) = (files(), Postgres::launch()?);
        let url = postgres.database("chaos").await;
        let proxy =
            Proxy::start(SocketAddr::from(([127, 0, 0, 1], postgres.port())), dice.fork()).await;
        let url =
            url.replace(&format!(":{}/", postgres.port()), &format!(":{}/", proxy.address.port()));
        let mut servers = Vec::new();
        for _ in 0..2 {
            servers.push(
                Server::start(files.path(), vec![("AGUI_STORE__URL".into(), url.clone())], dice)
                    .await,
            );
        }
        Some(Self { servers, database: Some(Database { postgres, proxy }), disk: None, files })
    }

    /// The folder of the SQLite file.
    pub(crate) fn data_folder(&self) -> Option<PathBuf> {
        self.database.is_none().then(|| self.files.path().join("data"))
    }

    pub(crate) fn addresses(&self) -> std::sync::Arc<[SocketAddr]> {
        self.servers.iter().map(|server| server.proxy.address).collect()
    }

    /// Returns the number of clients' connections that were cut, and of those in which bytes were
    /// repeated.
    pub(crate) fn proxy_counts(&self) -> (usize, usize) {
        let counts = self.servers.iter().map(|server| server.proxy.counts());
        counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Ends the servers and prints their logs.
    pub(crate) fn print_logs(&mut self) {
        for server in &mut self.servers {
            server.signal("-KILL");
            let log = server.process.take().unwrap().ended().1;
            println!("--- the log of a server since its start\n{log}");
        }
    }

    pub(crate) fn trouble(&self, trouble: Trouble) {
        self.servers.iter().for_each(|server| server.proxy.set_trouble(trouble));
    }
}

fn files() -> tempfile::TempDir {
    let files = tempfile::Builder::new().prefix("agui-chaos-").tempdir().unwrap();
    fs::write(files.path().join("config.toml"), CONFIG).unwrap();
    fs::write(files.path().join("script.toml"), SCRIPT).unwrap();
    files
}

fn path(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

impl Server {
    async fn start(files: &Path, mut environment: Vec<(String, String)>, dice: &mut Dice) -> Self {
        environment
            .extend((0..PRINCIPALS).map(|principal| (format!("KEY_{principal}"), key(principal))));
        let config = path(&files.join("config.toml"));
        let arguments = ["--config", &config, "--log", "warn,agui_server::server=info"]
            .map(str::to_owned)
            .to_vec();
        let proxy = Proxy::start(SocketAddr::from(([127, 0, 0, 1], 1)), dice.fork()).await;
        let mut server = Self { process: None, proxy, arguments, environment };
        server.launch();
        server
    }

    /// Starts a process. Blocks until it listens.
    pub(crate) fn launch(&mut self) {
        let arguments: Vec<_> = self.arguments.iter().map(String::as_str).collect();
        let environment: Vec<_> =
            self.environment.iter().map(|(name, value)| (&**name, &**value)).collect();
        let process = tokio::task::block_in_place(|| Process::start(&arguments, &environment));
        let address =
            process.url.strip_prefix("http://").unwrap().to_socket_addrs().unwrap().next().unwrap();
        self.proxy.set_target(address);
        self.process = Some(process);
    }

    pub(crate) fn signal(&self, signal: &str) {
        self.process.as_ref().unwrap().signal(signal);
    }

    /// Waits for the end of the process after a signal. Panics if the log has a panic of the server.
    pub(crate) fn end(&mut self, code: Option<i32>) {
        let (ended, log) = tokio::task::block_in_place(|| self.process.take().unwrap().ended());
        assert_eq!(ended, code, "{log}");
        assert!(!log.contains("panicked"), "{log}");
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.as_ref().unwrap().child.id()
    }
}

/// A file system of 96 MB in memory, which only root can mount. SQLite copies its write-ahead log after 32 MB.
///
/// A shell unmounts it when the pipe from this process closes, so also when this process is killed.
pub(crate) struct SmallDisk {
    folder: PathBuf,
    shell: Child,
}

impl SmallDisk {
    fn mount(folder: &Path) -> Option<Self> {
        let script = r#"
            mount -t tmpfs -o size=96m agui-chaos "$1" 2>/dev/null && echo mounted || exit
            trap '' HUP INT TERM
            read -r _
            umount -l "$1""#;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script, "sh"]).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line == "mounted\n" {
            return Some(Self { folder: folder.to_owned(), shell });
        }
        shell.wait().unwrap();
        println!(
            "SKIPPED: the full disk, because this process may not mount a file system (run the tests as root)"
        );
        None
    }

    /// Takes all free space.
    pub(crate) fn fill(&self) {
        let mut file = fs::File::create(self.folder.join("balloon")).unwrap();
        let zeros = vec![0; 64 * 1024];
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
    }

    pub(crate) fn free(&self) {
        fs::remove_file(self.folder.join("balloon")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
