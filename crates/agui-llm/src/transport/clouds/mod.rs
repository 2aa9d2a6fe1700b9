//! The credentials of clouds: where their own tools find them, and how a request is authenticated with them.
//!
//! The servers for metadata are asked only if the configuration says `credentials`, within short time limits and without a
//! proxy. Errors name the source that failed, and repeat nothing of what it contains.

mod aws;
mod client;
mod gcp;
mod profile;
mod signature;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

pub(super) use aws::AwsCredentials;
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

/// What a signature is made with.
#[derive(Clone)]
pub(crate) struct AwsKeys {
    region: String,
    pub(crate) given: GivenKeys,
}

/// Keys as AWS writes them in JSON.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct GivenKeys {
    access_key_id: String,
    #[serde(deserialize_with = "secret")]
    pub(crate) secret_access_key: SecretString,
    #[serde(alias = "SessionToken", default, deserialize_with = "optional_secret")]
    pub(crate) token: Option<SecretString>,
    expiration: Option<String>,
}

fn optional_secret<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SecretString>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(Into::into))
}

/// Reads keys in JSON.
fn parse(text: &[u8]) -> Result<GivenKeys, String> {
    // An error of the parser may repeat a value.
    serde_json::from_slice(text).map_err(|_| no_keys())
}

fn no_keys() -> String {
    "AWS's answer has no keys".to_owned()
}
