//! PgBouncer in transaction mode in front of a Postgres server of these tests.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use super::postgres::{PASSWORD, Postgres, USER};

const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A running PgBouncer, which is killed on drop.
pub(crate) struct PgBouncer {
    child: Child,
    port: u16,
    postgres: u16,
}

impl PgBouncer {
    /// Starts PgBouncer with this number of connections to each database. Returns `None` if it is not installed; panics in CI.
    pub(crate) fn start(postgres: &Postgres, pool_size: usize) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            assert!(
                !std::env::var("CI").is_ok_and(|ci| ci == "true"),
                "PgBouncer is not installed: see tests/run.sh"
            );
            eprintln!("skipped: PgBouncer is not installed");
            return None;
        }
        // Another process may take the free port before PgBouncer does.
        (0..5)
            .find_map(|_| Self::try_start(postgres, pool_size))
            .or_else(|| panic!("PgBouncer does not start"))
    }

    fn try_start(postgres: &Postgres, pool_size: usize) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let users = postgres.folder().join(format!("pgbouncer-{port}.users"));
        fs::write(&users, format!("\"{USER}\" \"{PASSWORD}\"\n")).unwrap();
        let file = postgres.folder().join(format!("pgbouncer-{port}.ini"));
        let (server, users) = (postgres.port(), users.display());
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = scram-sha-256\nauth_file = {users}\npool_mode = transaction\n\
             default_pool_size = {pool_size}\nserver_idle_timeout = 2\nmax_client_conn = 500\n"
        );
        fs::write(&file, text).unwrap();
        let mut command = postgres.command(Path::new(PROGRAM));
        command
            .arg("-q")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut bouncer = Self { child: command.spawn().unwrap(), port, postgres: server };
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(20)
            && bouncer.child.try_wait().unwrap().is_none()
        {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return Some(bouncer);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Returns the URL of a database through PgBouncer.
    pub(crate) fn url(&self, direct: &str) -> String {
        direct.replace(&format!(":{}/", self.postgres), &format!(":{}/", self.port))
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
