//! The sections `[server]` and `[secrets]`, whose options belong to several parts of the server.

use std::{
    net::{SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Deserializer, de::Error as _};
use smart_default::SmartDefault;

use agui_base::units;

/// The address, the data folder, and limits of connections: the section `[server]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerConfig {
    /// The address, or a name of this machine, and the port to listen on. An address that other machines can reach needs
    /// authentication (`[auth]`).
    #[serde(deserialize_with = "socket_address")]
    #[cfg_attr(test, schemars(with = "String", regex(pattern = units::NAMED_SOCKET_ADDRESS)))]
    #[default(SocketAddr::from(([127, 0, 0, 1], 8080)))]
    pub(crate) listen: SocketAddr,
    /// Without authentication: the host names, without port, under which the server answers, in
    /// addition to localhost and IP addresses, such as `agents.example.com`. `*` allows all, for
    /// servers behind a proxy that checks the name: otherwise any web page can give its own name
    /// this server's address, and use the server.
    pub(crate) allowed_hosts: Vec<String>,
    /// The URL at which browsers reach this server, in all addresses that it makes: of files, of WebSockets, and of the pages on
    /// which people log in at MCP servers, which need `https` or a loopback address. Agents at other servers then get URLs of
    /// files in place of data. Default: the `Host` of the request, with the scheme that a proxy reports
    /// (docs/operations.md#tls-and-reverse-proxies); for logins, that of `listen` if it is a loopback address.
    #[cfg_attr(test, schemars(regex(pattern = "^https?://")))]
    pub(crate) public_url: Option<String>,
    /// The folder for stored data, created if it does not exist. A relative path starts in the folder in which the
    /// server is started.
    #[default("data".into())]
    pub(crate) data_dir: PathBuf,
    /// The largest request body, in bytes. Larger ones are refused with 413.
    #[default(10 * 1024 * 1024)]
    pub(crate) max_body_bytes: usize,
    /// The bytes of the request bodies that all clients are sending, together; at least two of the
    /// largest fit. A quarter is for the first 64 KiB of each body. With several principals, each
    /// gets at most half. A body that gets no permit within five seconds is refused with 503
    /// (`too_many_body_bytes`).
    #[default(128 * 1024 * 1024)]
    pub(crate) max_body_bytes_in_flight: usize,
    /// The bytes of the responses with messages of threads that clients are being sent, together;
    /// at least two of the largest threads fit. A quarter is for responses of up to 64 KiB. With
    /// several principals, each gets at most half. A response that gets no permit within five
    /// seconds is refused with 503 (`too_many_response_bytes`).
    #[default(128 * 1024 * 1024)]
    pub(crate) max_response_bytes_in_flight: usize,
    /// The largest number of connections. On further ones only `/healthz` and `/readyz` are
    /// answered, and other requests are refused with 503. It is lowered to seven eighths of the
    /// number of files that the process may open.
    #[cfg_attr(test, schemars(range(min = 1)))]
    #[default(20_000)]
    pub(crate) max_connections: usize,
    /// The largest number of streams without an end: of changes of threads, of CopilotKit's
    /// inspector, and CopilotKit's WebSockets. More are refused with 503. `share_percent` of
    /// `[limits]` applies. They get half of `max_connections` at most.
    #[cfg_attr(test, schemars(range(min = 1)))]
    #[default(2000)]
    pub(crate) max_streams: usize,
    /// The time without events after which a stream gets a comment, so that proxies do not close
    /// it.
    #[serde(rename = "keep_alive_secs", with = "units::OptionalSeconds")]
    #[default(Some(Duration::from_secs(15)))]
    pub(crate) keep_alive: Option<Duration>,
    /// The time that runs get to end when the server is stopped. Then they are ended with
    /// `RUN_ERROR` (`server_shutdown`).
    #[serde(rename = "drain_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(10))]
    pub(crate) drain: Duration,
    /// The time limit for receiving a request's head.
    #[serde(rename = "head_timeout_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(15))]
    pub(crate) head_timeout: Duration,
    /// The time for receiving a request's body, beside a second for each 16 KiB of it that have arrived.
    #[serde(rename = "body_timeout_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(30))]
    pub(crate) body_timeout: Duration,
    /// The time after which a client is disconnected that does not read its response, or whose machine does not
    /// acknowledge packets.
    #[serde(rename = "stall_timeout_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(40))]
    pub(crate) stall_timeout: Duration,
    /// True makes a request with the header `traceparent` a part of the caller's trace, and the
    /// flag in it decides whether it is recorded. With false, each request begins a trace of its
    /// own, for servers whose callers are strangers.
    #[default(true)]
    pub(crate) accept_traceparent: bool,
}

/// The key that seals stored secrets: the section `[secrets]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SecretsConfig {
    /// The environment variable with the key, a random text of at least 32 bytes
    /// (`openssl rand -base64 32`). It seals the tokens of people who log in at MCP servers and web
    /// services. With another key, people log in again. All servers of one store need the same.
    /// Default: nobody logs in.
    pub(crate) key_env: Option<String>,
}

/// The values of `listen` that people write.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected an address and a port, such as \"127.0.0.1:8080\" or \"localhost:8080\""
)]
enum WrittenAddress {
    Port(u16),
    Text(String),
}

/// Reads an address and a port. A name in place of the address is resolved, to IPv4 if it has such an address.
fn socket_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = match WrittenAddress::deserialize(deserializer)? {
        WrittenAddress::Text(text) => text,
        WrittenAddress::Port(port) => port.to_string(),
    };
    if let Ok(port) = text.strip_prefix(':').unwrap_or(&text).parse::<u16>() {
        return Err(D::Error::custom(format!(
            "the address is missing: write \"127.0.0.1:{port}\", or \"0.0.0.0:{port}\" to be reached from other machines"
        )));
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let is_name_with_port = |(name, port): (&str, &str)| {
        !name.is_empty() && !name.contains(':') && port.parse::<u16>().is_ok()
    };
    if !text.rsplit_once(':').is_some_and(is_name_with_port) {
        return Err(D::Error::custom(
            "expected an address and a port, such as \"127.0.0.1:8080\" or \"localhost:8080\"",
        ));
    }
    let found = text
        .to_socket_addrs()
        .map_err(|error| D::Error::custom(format!("{text:?} cannot be resolved: {error}")))?;
    let found: Vec<_> = found.collect();
    let address = found.iter().find(|address| address.is_ipv4()).or(found.first());
    address.copied().ok_or_else(|| D::Error::custom(format!("{text:?} has no address")))
}
