//! HTTP clients for other servers, the readers of their [`events`] and of other bodies, and the
//! rules for secrets between two servers.
//!
//! All clients of this crate are made here. They have a limit on connecting and none on the whole response: a
//! response may stream for long, and its reader limits the silence. Redirects are not followed, because a key for one
//! host must not reach another. They ask for no compression, which delays the pieces of a stream. The readers of models'
//! answers read gzip if it comes anyway; a remote agent's stream must not be compressed.

pub mod aws_events;
mod bare_errors;
pub mod body;
pub mod body_form;
pub mod events;
pub mod public_hosts;
pub mod scrub;
pub mod secret_names;
mod tls;
pub mod trust;

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};
use reqwest::{Client, ClientBuilder, redirect::Policy};

/// The default time limit on connecting.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limit on a request with a part of a file, and on the next bytes of a response.
#[cfg(feature = "object-store")]
const OBJECT_TIMEOUT: Duration = Duration::from_secs(60);

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

/// A client cannot be made, because TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No certificate can be trusted.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The client itself failed.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
}

/// Returns a client. It trusts the system's certificates and Mozilla's list, because some images have no certificates.
///
/// # Errors
/// A `ClientError`.
pub fn client(options: &ClientOptions) -> Result<Client, ClientError> {
    Ok(builder(options)?.build()?)
}

/// Returns a client that uses no proxy from the environment, for tools whose URLs contain a model's text: it connects
/// to the URL's host and to no other.
///
/// # Errors
/// A `ClientError`.
pub fn direct_client(options: &ClientOptions) -> Result<Client, ClientError> {
    Ok(builder(options)?.no_proxy().build()?)
}

/// Returns a client for an object store, which reads its responses whole or in pieces without long pauses.
///
/// # Errors
/// A `ClientError`.
#[cfg(feature = "object-store")]
pub fn object_client() -> Result<Client, ClientError> {
    Ok(builder(&ClientOptions::default())?.read_timeout(OBJECT_TIMEOUT).build()?)
}

fn builder(options: &ClientOptions) -> Result<ClientBuilder, ClientError> {
    Ok(Client::builder()
        .connect_timeout(options.connect_timeout)
        .redirect(Policy::none())
        .tcp_nodelay(true)
        .tls_backend_preconfigured(tls::config()?)
        .default_headers(HeaderMap::from_iter([(
            ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        )]))
        .user_agent(concat!("agui-server/", env!("CARGO_PKG_VERSION"))))
}
