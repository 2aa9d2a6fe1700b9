//! A Postgres server for tests: a new data directory and a free loopback port. It stops when the test process ends.
//!
//! A shell reads from a pipe of the test process. When the test process ends, even by SIGKILL, the pipe closes, and the
//! shell stops the server and removes its files. The shell ignores HUP, INT and TERM because Ctrl-C signals the whole
//! process group. Postgres refuses to run as root: root starts it as another user with `setpriv`.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    os::unix::fs::{MetadataExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

pub(crate) const USER: &str = "agui";
pub(crate) const PASSWORD: &str = "not-to-be-shown";

/// A Postgres server of this test process.
pub(crate) struct Postgres {
    binaries: PathBuf,
    folder: PathBuf,
    port: u16,
    shell: Mutex<Option<Child>>,
}

impl Postgres {
    /// Returns the server that all tests of this process share; each test makes its own databases. Returns `None` if
    /// Postgres is not installed; panics in CI.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
        SERVER.get_or_init(Self::launch).as_ref()
    }

    /// Starts a server for one test, which may stop it.
    pub(crate) fn launch() -> Option<Self> {
        let Some(binaries) = binaries() else {
            let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!ci, "Postgres is not installed: see tests/run.sh");
            eprintln!("skipped: Postgres is not installed");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("agui-postgres-").tempdir().unwrap().keep();
        if let Some((user, group)) = other_user(&folder) {
            chown(&folder, Some(user), Some(group)).unwrap();
        }
        let password = folder.join("password");
        fs::write(&password, PASSWORD).unwrap();
        fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .unwrap();
        let mut server = Self { binaries, folder, port: 0, shell: Mutex::default() };
        let mut initdb = server.command(&server.binaries.join("initdb"));
        initdb.args([
            "--no-sync",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "-U",
            USER,
        ]);
        initdb.arg("--pwfile").arg(password).arg("-D").arg(server.folder.join("data"));
        let made = initdb.output().unwrap();
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        // Another process may take the free port before Postgres does.
        for _ in 0..5 {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if server.try_start() {
                return Some(server);
            }
        }
        panic!("Postgres does not start: try it by hand, {}", server.binaries.display())
    }

    /// Restarts the server on the same port with the same data.
    pub(crate) fn start(&self) {
        assert!(self.try_start(), "Postgres does not start again");
    }

    /// Stops the server and closes its connections ("fast shutdown"). Returns after its exit.
    pub(crate) fn stop(&self) {
        self.stop_with("INT");
    }

    /// Stops the server without a shutdown checkpoint, as in a crash ("immediate shutdown"). Returns after its exit.
    pub(crate) fn stop_immediately(&self) {
        self.stop_with("QUIT");
    }

    /// Suspends all processes of the server, as on a machine that hangs.
    pub(crate) fn suspend(&self) {
        self.signal_all("-STOP");
    }

    /// Ends a [`suspend`](Self::suspend).
    pub(crate) fn resume(&self) {
        self.signal_all("-CONT");
    }

    fn signal_all(&self, signal: &str) {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        let main = file.lines().next().unwrap();
        // The main process first, so that it starts no more.
        assert!(Command::new("kill").args([signal, main]).status().unwrap().success());
        let children = fs::read_to_string(format!("/proc/{main}/task/{main}/children")).unwrap();
        // A process may have ended in the meantime.
        let _ = Command::new("kill")
            .arg(signal)
            .args(children.split_whitespace())
            .stderr(Stdio::null())
            .status();
    }

    fn stop_with(&self, signal: &str) {
        let mut shell = self.shell.lock().unwrap().take().unwrap();
        shell.stdin.take().unwrap().write_all(format!("{signal}\n").as_bytes()).unwrap();
        shell.wait().unwrap();
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the URL of the database that initdb creates.
    pub(crate) fn url(&self) -> String {
        self.url_of("postgres")
    }

    pub(crate) fn url_of(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD}@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Creates an empty database and returns its URL.
    pub(crate) async fn database(&self, name: &str) -> String {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        // CREATE DATABASE fails while another connection uses the template.
        static CREATING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
        let _creating = CREATING.lock().await;
        let name = format!("{name}_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut conn = PgConnection::connect(&self.url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE \"{name}\"")))
            .execute(&mut conn)
            .await
            .unwrap();
        conn.close().await.unwrap();
        self.url_of(&name)
    }

    /// Returns a command that runs as a user that Postgres accepts.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let Some((user, group)) = other_user(&self.folder) else {
            let mut command = Command::new(program);
            command.current_dir(&self.folder);
            return command;
        };
        let mut command = Command::new("setpriv");
        command
            .arg(format!("--reuid={user}"))
            .arg(format!("--regid={group}"))
            .args(["--clear-groups", "--"]);
        command.arg(program).current_dir(&self.folder);
        command
    }

    fn try_start(&self) -> bool {
        let script = r#"
            "$1" -D "$2/data" -p "$3" -h 127.0.0.1 -k '' -c fsync=off -c max_connections=200 </dev/null &
            trap '' HUP INT TERM
            exec 2>/dev/null
            if read -r signal; then
                kill "-$signal" $!; wait
            else
                kill -INT $!; wait; cd /; rm -rf "$2"
            fi"#;
        let mut shell = self.command(Path::new("/bin/sh"));
        shell.args(["-c", script, "sh"]).arg(self.binaries.join("postgres")).arg(&self.folder);
        shell
            .arg(self.port.to_string())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .stdout(Stdio::null());
        let mut shell = shell.spawn().unwrap();
        let mut log = BufReader::new(shell.stderr.take().unwrap()).lines().map_while(Result::ok);
        let is_ready = log.any(|line| line.contains("ready to accept connections"));
        if is_ready {
            // A full pipe would block the server.
            std::thread::spawn(move || log.for_each(drop));
            *self.shell.lock().unwrap() = Some(shell);
        } else {
            shell.stdin.take().unwrap().write_all(b"INT\n").unwrap();
            shell.wait().unwrap();
        }
        is_ready
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if let Some(mut shell) = self.shell.lock().unwrap().take() {
            drop(shell.stdin.take());
            let _ = shell.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the folder of `initdb` and `postgres`. Debian does not put them into `PATH`.
fn binaries() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH")?));
    folders
        .into_iter()
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

/// Returns the user id and group id for Postgres if root runs the tests: those of the account `postgres` or `nobody`.
fn other_user(mine: &Path) -> Option<(u32, u32)> {
    static IS_ROOT: OnceLock<bool> = OnceLock::new();
    if !IS_ROOT.get_or_init(|| fs::metadata(mine).unwrap().uid() == 0) {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let numbers = |name: &str| {
        let mut fields = users
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?
            .split(':')
            .skip(1);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    numbers("postgres").or_else(|| numbers("nobody")).or(Some((65534, 65534)))
}
