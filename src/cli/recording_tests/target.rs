//! The agent under test: an endpoint, a server's agents, or the configured agents on a port of this machine.

use std::error::Error;

use reqwest::Url;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::{
    Server,
    auth::Authenticator,
    cli::{
        arguments::{Options, TestArguments},
        load::load,
    },
    metrics::MetricsOptions,
    recording::RecordOptions,
    telemetry::logs,
};

pub(super) struct Target {
    url: Url,
    /// True if the URL is that of a server, and false if it is that of one agent.
    has_agents: bool,
    own: Option<OwnServer>,
}

struct OwnServer {
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Target {
    pub(super) async fn open(arguments: &TestArguments) -> Result<Self, Box<dyn Error>> {
        if let Some(url) = &arguments.against {
            let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            let url = url.ok_or("--against: expected a URL such as http://localhost:8080")?;
            return Ok(Self { has_agents: url.path() == "/", url, own: None });
        }
        let options = Options { config: arguments.config.clone(), log: arguments.log.clone(), ..Options::default() };
        let (loaded, _) = load(options)?;
        if arguments.log.is_some() {
            logs::init(&loaded.config.log)?;
        }
        // Threads in memory, on a port that only this machine reaches.
        let server = Server::from_config(&loaded)?
            .authenticator(Authenticator::disabled())
            .metrics(MetricsOptions::default())
            .record(RecordOptions::default());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = Url::parse(&format!("http://{}/", listener.local_addr()?))?;
        let (stop, stopped) = oneshot::channel::<()>();
        let server = tokio::spawn(server.serve_on(listener, async move { drop(stopped.await) }));
        Ok(Self { url, has_agents: true, own: Some(OwnServer { stop, server }) })
    }

    /// Returns the URL for runs of an agent.
    pub(super) fn url(&self, agent: &str) -> Result<Url, Box<dyn Error>> {
        let mut url = self.url.clone();
        if self.has_agents {
            let mut path = url.path_segments_mut().map_err(|()| "--against: the URL has no path")?;
            path.pop_if_empty().extend(["agents", agent, "send-message"]);
        }
        Ok(url)
    }

    /// Ends the server of this process.
    pub(super) async fn close(self) {
        if let Some(OwnServer { stop, server }) = self.own {
            drop(stop);
            // The results are known; a failure of the shutdown does not change them.
            let _ = server.await;
        }
    }
}
