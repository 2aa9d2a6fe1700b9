//! nginx, Caddy and HAProxy with the configurations of `deploy/`, in which only addresses are replaced.

use std::{
    fs,
    net::TcpListener,
    ops::Deref,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::{
    client::{Endpoint, Replica},
    poll::poll_until,
};

/// The header with the address of the replica that responds. Only these tests have it.
pub(crate) const REPLICA: &str = "x-replica";

const NGINX_CONF: &str = include_str!("../../../deploy/nginx.conf");
const NGINX_SPLIT_CONF: &str = include_str!("../../../deploy/nginx-split.conf");
const NGINX_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_js_module.so";
const HAPROXY_CFG: &str = include_str!("../../../deploy/haproxy.cfg");
const CADDYFILE: &str = include_str!("../../../deploy/Caddyfile");

/// A proxy in front of two replicas, which is killed on drop.
pub(crate) struct Proxy {
    child: Child,
    endpoint: Endpoint,
    _folder: tempfile::TempDir,
}

impl Deref for Proxy {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Proxy {
    /// Starts nginx. Returns `None` if it is not installed; panics in CI.
    pub(crate) async fn nginx(replicas: [&Replica; 2]) -> Option<Self> {
        Self::nginx_with(replicas, NGINX_CONF, "").await
    }

    /// Starts nginx with a cache, which keeps all that it may keep.
    pub(crate) async fn nginx_with_cache(replicas: [&Replica; 2]) -> Option<Self> {
        let cached = "proxy_cache shared; proxy_cache_valid any 10m; add_header x-cache $upstream_cache_status always;";
        let site = replaced(NGINX_CONF, [("proxy_buffering off;", cached.to_owned())]);
        Self::nginx_with(replicas, &site, "").await
    }

    /// Starts nginx in front of two deployments.
    pub(crate) async fn nginx_split(deployments: [&Replica; 2]) -> Option<Self> {
        installed(NGINX_MODULE)?;
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy;");
        let site = replaced(NGINX_SPLIT_CONF, [("/etc/nginx/conf.d;", folder.to_owned())]);
        Self::nginx_with(deployments, &site, &format!("load_module {NGINX_MODULE};")).await
    }

    async fn nginx_with(replicas: [&Replica; 2], site: &str, modules: &str) -> Option<Self> {
        let program = installed("nginx")?;
        Some(
            Self::start(replicas, |folder, port, [a, b]| {
                let site = replaced(
                    site,
                    [("listen 80;", format!("listen {port};")), ("replica-1:8080", a), ("replica-2:8080", b)],
                );
                // One process, which does not change its user.
                let folder = folder.display();
                let main = format!(
                    "{modules} daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{ worker_connections 4096; }}
                 http {{
                    proxy_cache_path {folder}/cache keys_zone=shared:1m;
                    access_log off; add_header {REPLICA} $upstream_addr always;
                    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
                    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
                    {site}
                 }}"
                );
                let file = format!("{folder}/nginx.conf");
                fs::write(&file, main).unwrap();
                let mut command = Command::new(&program);
                command.args(["-e", "stderr", "-c", &file]);
                command
            })
            .await,
        )
    }

    /// Starts HAProxy. Returns `None` if it is not installed; panics in CI.
    pub(crate) async fn haproxy(replicas: [&Replica; 2]) -> Option<Self> {
        let program = installed("haproxy")?;
        Some(
            Self::start(replicas, |folder, address, [a, b]| {
                let site = replaced(
                    HAPROXY_CFG,
                    [
                        ("bind :80", format!("bind {address}")),
                        ("replica-1:8080", a),
                        ("replica-2:8080", b),
                    ],
                );
                let file = folder.join("haproxy.cfg");
                fs::write(&file, site).unwrap();
                let mut command = Command::new(&program);
                command.arg("-db").arg("-f").arg(file);
                command
            })
            .await,
        )
    }

    /// Starts Caddy. Returns `None` if it is not installed; panics in CI.
    pub(crate) async fn caddy(replicas: [&Replica; 2]) -> Option<Self> {
        let program = installed("caddy")?;
        Some(
            Self::start(replicas, |folder, port, [a, b]| {
                // Plain HTTP: a certificate for the name would have to be fetched.
                let site = replaced(
                    CADDYFILE,
                    [
                        ("agents.example.com {", format!("http://{port} {{")),
                        ("replica-1:8080", a),
                        ("replica-2:8080", b),
                    ],
                );
                let upstream = format!(
                    "header_down {REPLICA} {{http.reverse_proxy.upstream.hostport}}\n\t\tlb_policy"
                );
                let site = site.replace("lb_policy", &upstream);
                let file = folder.join("Caddyfile");
                fs::write(&file, format!("{{\n\tadmin off\n}}\n{site}")).unwrap();
                let mut command = Command::new(&program);
                command
                    .args(["run", "--adapter", "caddyfile", "--config"])
                    .arg(file)
                    .env("HOME", folder);
                command
            })
            .await,
        )
    }

    /// `command` writes the configuration into the folder, for the address of the proxy and those of the replicas.
    async fn start(
        replicas: [&Replica; 2],
        command: impl Fn(&Path, &str, [String; 2]) -> Command,
    ) -> Self {
        let replicas = replicas.map(|replica| replica.url.trim_start_matches("http://").to_owned());
        // Another process may take the free port before the proxy does.
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let address =
                TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            let mut command = command(folder.path(), &address, replicas.clone());
            let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let mut proxy = Self {
                child,
                endpoint: Endpoint::new(format!("http://{address}")),
                _folder: folder,
            };
            let is_running = poll_until("the proxy forwards requests or ends", async || {
                if proxy.child.try_wait().unwrap().is_some() {
                    return Some(false);
                }
                let response =
                    proxy.endpoint.request(reqwest::Method::GET, "/healthz").send().await;
                response.is_ok_and(|response| response.status() == 200).then_some(true)
            });
            if is_running.await {
                return proxy;
            }
        }
        panic!("the proxy does not start: run its command by hand")
    }
}

/// Replaces texts that the configuration must contain.
fn replaced<const N: usize>(text: &str, replacements: [(&str, String); N]) -> String {
    replacements.iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "the configuration has no {old:?}");
        text.replace(old, new)
    })
}

/// Debian puts servers into a folder that is not in the `PATH` of all users.
fn installed(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|folder| folder.join(program)).find(|file| file.exists());
    if found.is_none() {
        assert!(
            !std::env::var("CI").is_ok_and(|ci| ci == "true"),
            "{program} is not installed: see tests/run.sh"
        );
        eprintln!("skipped: {program} is not installed");
    }
    found
}
