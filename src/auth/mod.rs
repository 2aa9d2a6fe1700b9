//! Authentication: from a request's head to its [`Principal`].
//!
//! Authentication sees the head of a request only, and knows nothing of runs. Secrets are compared in constant time,
//! and are never logged or sent back. To add a built-in way: implement `Authenticate`, and `From` for
//! [`Authenticator`].

mod accepted_keys;
mod api_key;
mod authenticator;
mod error;
#[cfg(feature = "jwt")]
mod jwt;

pub(crate) use accepted_keys::ApiKeys;
pub use agui_agent::Principal;
pub use api_key::ApiKey;
pub use authenticator::Authenticator;
pub use error::{AuthError, KeyError};
#[cfg(feature = "jwt")]
pub use jwt::{JwksOptions, Jwt, JwtAlgorithm, JwtOptions};
