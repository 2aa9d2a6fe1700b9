//! Authentication: from a request's head to its [`Principal`].
//!
//! Authentication sees the head of a request only, and knows nothing of runs. Secrets are compared in constant time,
//! and are never logged or sent back. To add a built-in way: implement `Authenticate`, and `From` for
//! [`Authenticator`].

mod algorithm;
mod api_key;
mod authenticator;
mod crypto;
mod error;
mod jwks;
mod jwt;
mod key;
mod principal;

pub use algorithm::JwtAlgorithm;
pub use api_key::{ApiKey, ApiKeys, InvalidDigest};
pub use authenticator::Authenticator;
pub use error::{AuthError, TokenError};
pub use jwks::JwksOptions;
pub use jwt::{Jwt, JwtError, JwtOptions};
pub use key::KeyError;
pub use principal::Principal;
