//! Authentication: from a request's head to its [`Principal`].
//!
//! Authentication sees the head of a request only, and knows nothing of runs. Secrets are compared in constant time,
//! and are never logged or sent back. To add a built-in way: implement `Authenticate`, and `From` for
//! [`Authenticator`].

#[cfg(feature = "jwt")]
mod algorithm;
mod api_key;
mod authenticator;
#[cfg(feature = "jwt")]
mod crypto;
mod error;
#[cfg(feature = "jwt")]
mod jwks;
#[cfg(feature = "jwt")]
mod jwt;
#[cfg(feature = "jwt")]
mod key;
mod principal;

#[cfg(feature = "jwt")]
pub use algorithm::JwtAlgorithm;
pub use api_key::ApiKey;
pub(crate) use api_key::ApiKeys;
pub use authenticator::Authenticator;
#[cfg(feature = "jwt")]
use error::TokenError;
pub use error::{AuthError, KeyError};
#[cfg(feature = "jwt")]
pub use jwks::JwksOptions;
#[cfg(feature = "jwt")]
pub use jwt::{Jwt, JwtOptions};
pub use principal::Principal;
pub(crate) use principal::owner_of;
