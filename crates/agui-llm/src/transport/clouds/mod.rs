//! The credentials of clouds, found in the places of the clouds' own tools, and the authentication
//! of requests with them.
//!
//! The servers for metadata are asked only if `credentials` is configured, within short time limits
//! and without a proxy. Errors name the source that failed, and repeat none of its content.

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

/// Reads a text that no log may contain.
fn secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

/// The keys of a signature.
#[derive(Clone)]
pub(crate) struct AwsKeys {
    region: String,
    pub(crate) given: GivenKeys,
}

/// Keys in the JSON of AWS.
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
