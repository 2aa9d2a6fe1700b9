//! How this server speaks to other servers: the one place that makes HTTP clients, and reads the [`events`] that stream
//! back.
//!
//! Every client has a limit on connecting and none on the whole: an answer may stream for as long as it has something
//! to say, and whoever reads it sets the limit on silence. Redirects are not followed: a key that is meant
//! for one host must not travel to another.

pub mod events;

use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, redirect::Policy};

/// How long connecting may take, if nothing else was said.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How a client connects.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long connecting may take, the handshake of TLS included.
    pub connect_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { connect_timeout: CONNECT_TIMEOUT }
    }
}

/// A client. Certificates are trusted that the system trusts, and Mozilla's list beside them, for images that have
/// none.
///
/// # Errors
/// When TLS cannot be set up.
pub fn client(options: &ClientOptions) -> reqwest::Result<Client> {
    builder(options).build()
}

/// A client that goes straight to the host it is given: no proxy that the environment names is used. For hosts that a
/// model has a say in, which may be inside of one's own network.
///
/// # Errors
/// When TLS cannot be set up.
pub fn direct_client(options: &ClientOptions) -> reqwest::Result<Client> {
    builder(options).no_proxy().build()
}

fn builder(options: &ClientOptions) -> ClientBuilder {
    // Fails when there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|der| Certificate::from_der(der).ok());
    Client::builder()
        .connect_timeout(options.connect_timeout)
        .redirect(Policy::none())
        .tcp_nodelay(true)
        .tls_certs_merge(roots)
        .user_agent(concat!("agui-server/", env!("CARGO_PKG_VERSION")))
}
