//! HTTP clients for other servers, and the reader of their [`events`].
//!
//! All clients of this crate are made here. They have a limit on connecting and none on the whole response: a
//! response may stream for long, and its reader limits the silence. Redirects are not followed, because a key for one
//! host must not reach another.

pub mod events;

use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, redirect::Policy};

/// The default time limit on connecting.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The time limit on connecting, TLS handshake included.
    pub connect_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { connect_timeout: CONNECT_TIMEOUT }
    }
}

/// Returns a client. It trusts the system's certificates and Mozilla's list, because some images have no certificates.
///
/// # Errors
/// If TLS cannot be set up.
pub fn client(options: &ClientOptions) -> reqwest::Result<Client> {
    builder(options).build()
}

/// Returns a client that uses no proxy from the environment, for tools whose URLs contain a model's text: it connects
/// to the URL's host and to no other.
///
/// # Errors
/// If TLS cannot be set up.
pub fn direct_client(options: &ClientOptions) -> reqwest::Result<Client> {
    builder(options).no_proxy().build()
}

fn builder(options: &ClientOptions) -> ClientBuilder {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().filter_map(|der| Certificate::from_der(der).ok());
    Client::builder()
        .connect_timeout(options.connect_timeout)
        .redirect(Policy::none())
        .tcp_nodelay(true)
        .tls_certs_merge(roots)
        .user_agent(concat!("agui-server/", env!("CARGO_PKG_VERSION")))
}
