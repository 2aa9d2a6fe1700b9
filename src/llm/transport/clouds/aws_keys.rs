//! Keys of AWS.

use secrecy::SecretString;
use serde::{Deserialize, Deserializer};

use super::secret;

/// What a signature is made with.
#[derive(Clone)]
pub(in crate::llm) struct AwsKeys {
    pub(super) region: String,
    pub(in crate::llm) given: GivenKeys,
}

/// Keys as AWS writes them in JSON.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::llm) struct GivenKeys {
    pub(super) access_key_id: String,
    #[serde(deserialize_with = "secret")]
    pub(in crate::llm) secret_access_key: SecretString,
    #[serde(alias = "SessionToken", default, deserialize_with = "optional_secret")]
    pub(in crate::llm) token: Option<SecretString>,
    pub(super) expiration: Option<String>,
}

fn optional_secret<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SecretString>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(Into::into))
}

/// Reads keys in JSON.
pub(super) fn parse(text: &[u8]) -> Result<GivenKeys, String> {
    // An error of the parser may repeat a value.
    serde_json::from_slice(text).map_err(|_| no_keys())
}

pub(super) fn no_keys() -> String {
    "AWS's answer has no keys".to_owned()
}
