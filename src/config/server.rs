//! The sections `[server]` and `[runs]`, whose options belong to several parts of the server.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer};

use crate::{run::OnDisconnect, units};

/// The section `[server]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The address and port to listen on.
    pub listen: SocketAddr,
    /// The host names that a server without authentication answers under, in addition to names like `localhost` and IP
    /// addresses.
    pub allowed_hosts: Vec<String>,
    /// The folder of stored data.
    pub data_dir: PathBuf,
    /// The largest request body, in bytes.
    pub max_body_bytes: usize,
    /// The bytes of the request bodies that all clients are sending, together.
    pub max_body_bytes_in_flight: usize,
    /// The largest number of connections.
    pub max_connections: usize,
    /// The silence after which a stream gets a keep-alive comment.
    #[serde(rename = "keep_alive_secs", deserialize_with = "optional_seconds")]
    pub keep_alive: Option<Duration>,
    /// The time that runs get to end at shutdown.
    #[serde(rename = "drain_secs", deserialize_with = "units::seconds")]
    pub drain: Duration,
    /// The time limit for a request's head.
    #[serde(rename = "head_timeout_secs", deserialize_with = "units::seconds")]
    pub head_timeout: Duration,
    /// The time limit for a request's body.
    #[serde(rename = "body_timeout_secs", deserialize_with = "units::seconds")]
    pub body_timeout: Duration,
    /// The time after which a client that neither reads nor acknowledges is disconnected.
    #[serde(rename = "stall_timeout_secs", deserialize_with = "units::seconds")]
    pub stall_timeout: Duration,
}

/// The section `[runs]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RunsConfig {
    /// The largest number of concurrent runs.
    pub max_concurrent: usize,
    /// The time limit of a run that ends with its connection.
    #[serde(rename = "max_seconds", deserialize_with = "optional_seconds")]
    pub max: Option<Duration>,
    /// The longest time without an event of the agent.
    #[serde(rename = "idle_seconds", deserialize_with = "optional_seconds")]
    pub idle: Option<Duration>,
    /// The effect of a client's leaving on its run.
    pub on_disconnect: OnDisconnect,
    /// The largest number of concurrent detached runs.
    pub max_detached: usize,
    /// The largest number of clients that follow detached runs, beside those that started them.
    pub max_followers: usize,
    /// The time limit of a detached run.
    #[serde(rename = "detached_max_seconds", deserialize_with = "optional_seconds")]
    pub detached_max: Option<Duration>,
    /// The most that a run may add to its messages and its log, in bytes.
    pub max_run_bytes: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            allowed_hosts: Vec::new(),
            data_dir: "data".into(),
            max_body_bytes: 10 * 1024 * 1024,
            max_body_bytes_in_flight: 128 * 1024 * 1024,
            max_connections: 20_000,
            keep_alive: Some(Duration::from_secs(15)),
            drain: Duration::from_secs(10),
            head_timeout: Duration::from_secs(15),
            body_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(40),
        }
    }
}

impl Default for RunsConfig {
    fn default() -> Self {
        Self {
            max_concurrent: 1000,
            max: Some(Duration::from_secs(600)),
            idle: Some(Duration::from_secs(120)),
            on_disconnect: OnDisconnect::Cancel,
            max_detached: 200,
            max_followers: 2000,
            detached_max: Some(Duration::from_secs(3600)),
            max_run_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Reads whole seconds; 0 is `None`.
fn optional_seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    Ok(units::optional(deserializer)?.map(Duration::from_secs))
}
