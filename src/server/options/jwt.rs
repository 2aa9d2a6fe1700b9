//! The section `[auth.jwt]`.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer};
use smart_default::SmartDefault;

use super::{diagnose::ConfigError, origin::Origin};
use crate::auth::{JwksOptions, JwtAlgorithm};
use agui_base::units;

const MAX_LEEWAY: Duration = Duration::from_secs(600);
const MIN_JWKS_AGE: Duration = Duration::from_secs(1200);
const NO_AUDIENCE: &str = "`audience` is needed: the name of this server in tokens (aud). An empty list also accepts tokens \
                           that were made for any other application";

/// The rules for tokens: the section `[auth.jwt]`. Exactly one of `secret_env`, `public_key`, `public_key_file` and
/// `jwks_url` is needed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, SmartDefault)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct JwtConfig {
    /// The accepted algorithms. If the list is empty: those that fit the key. An RSA key that names
    /// none is for the first RSA algorithm of the list, or RS256. A token never decides.
    pub(crate) algorithms: Vec<JwtAlgorithm>,
    /// For HS256: the environment variable with the secret, of at least 32 bytes.
    pub(crate) secret_env: Option<String>,
    /// A public key in PEM: RSA, on the curve P-256 or P-384, or Ed25519.
    pub(crate) public_key: Option<String>,
    /// The file of a public key in PEM. A relative path starts in the folder of the configuration.
    pub(crate) public_key_file: Option<PathBuf>,
    /// The URL of published public keys (JWKS). They are fetched when the first token comes, every
    /// ten minutes, and for a token with an unknown key, at most every 30 seconds.
    pub(crate) jwks_url: Option<String>,
    /// The age until which published keys stay in use if no newer ones can be fetched,
    /// at least 1200. Then tokens are answered with 503 until keys are fetched.
    #[serde(rename = "jwks_max_age_secs", with = "units::Seconds")]
    #[default(JwksOptions::default().max_age)]
    pub(crate) jwks_max_age: Duration,
    /// The required issuer (`iss`) of tokens. If not set: any issuer that has the key.
    pub(crate) issuer: Option<String>,
    /// The accepted audiences (`aud`) of tokens, a text or a list. Required. An empty list also
    /// accepts tokens for other applications.
    #[serde(deserialize_with = "one_or_many")]
    #[cfg_attr(test, schemars(with = "OneOrMany"))]
    pub(crate) audience: Option<Vec<String>>,
    /// The largest accepted difference between clocks, at most 600. It applies to `exp`, which is
    /// required, and `nbf`.
    #[serde(rename = "leeway_secs", with = "units::Seconds")]
    #[default(Duration::from_secs(30))]
    pub(crate) leeway: Duration,
    /// The claim with the principal's name, a text of 1 to 256 bytes.
    #[default("sub".to_owned())]
    pub(crate) subject_claim: String,
}

pub(super) fn check(jwt: &JwtConfig, origin: &Origin) -> Result<(), ConfigError> {
    let error = |option: &str, message: &str| Err(origin.error(&["auth", "jwt", option], message));
    let sources = [
        ("secret_env", jwt.secret_env.is_some()),
        ("public_key", jwt.public_key.is_some()),
        ("public_key_file", jwt.public_key_file.is_some()),
        ("jwks_url", jwt.jwks_url.is_some()),
    ];
    let mut given = sources.iter().filter(|(_, given)| *given).map(|(name, _)| *name);
    let Some(source) = given.next() else {
        let message = "mode = \"jwt\" needs a key: `secret_env`, `public_key`, `public_key_file` or `jwks_url`";
        return Err(origin.error(&["auth", "jwt"], message));
    };
    if let Some(second) = given.next() {
        return error(second, &format!("`{source}` is set, too; only one of them can be the key"));
    }
    let by_secret = jwt.secret_env.is_some();
    let fits_key =
        jwt.algorithms.iter().all(|algorithm| (*algorithm == JwtAlgorithm::Hs256) == by_secret);
    let is_blank = |text: &String| text.trim().is_empty();
    let rules = [
        ("algorithms", fits_key || !by_secret, "a secret is for \"HS256\" only"),
        (
            "algorithms",
            fits_key,
            "public keys are for the other algorithms; \"HS256\" needs a secret",
        ),
        ("audience", jwt.audience.is_some(), NO_AUDIENCE),
        ("audience", !jwt.audience.iter().flatten().any(is_blank), "a name is empty"),
        (
            "issuer",
            !jwt.issuer.as_ref().is_some_and(is_blank),
            "it is empty; leave it out to accept any issuer",
        ),
        (
            "leeway_secs",
            jwt.leeway <= MAX_LEEWAY,
            "at most 600: expired tokens are accepted for that long",
        ),
        (
            "jwks_max_age_secs",
            jwt.jwks_max_age >= MIN_JWKS_AGE,
            "at least 1200: keys are fetched again after 600 seconds",
        ),
        ("subject_claim", !is_blank(&jwt.subject_claim), "it is empty"),
    ];
    match rules.into_iter().find(|(_, holds, _)| !holds) {
        Some((option, _, problem)) => error(option, problem),
        None => Ok(()),
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

fn one_or_many<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    Ok(Some(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(text) => vec![text],
        OneOrMany::Many(texts) => texts,
    }))
}
