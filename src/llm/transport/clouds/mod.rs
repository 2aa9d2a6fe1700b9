//! The credentials of clouds: where their own tools find them, and how a request is authenticated with them.
//!
//! The servers for metadata are asked only if the configuration says `credentials`, within short time limits and without a
//! proxy. Errors name the source that failed, and repeat nothing of what it contains.

mod aws;
mod aws_keys;
mod client;
mod gcp;
mod profile;
mod signature;

use secrecy::SecretString;
use serde::{Deserialize as _, Deserializer};

pub(super) use aws::AwsCredentials;
pub(super) use aws_keys::AwsKeys;
pub(super) use gcp::GcpCredentials;
pub(super) use signature::signed_headers;

/// Returns an environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads a text that never stands in a log.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}
