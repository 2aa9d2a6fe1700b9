//! What can be set about tokens that somebody else signs.

use std::path::PathBuf;

use serde::Deserialize;

use super::{ConfigError, Origin};

/// The largest difference between clocks that makes sense, in seconds.
const LONGEST_LEEWAY: u64 = 600;

/// How the tokens of `mode = "jwt"` are checked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Jwt {
    /// How they may be signed; empty for what the key is for.
    pub algorithms: Vec<JwtAlgorithm>,
    /// The environment variable with the secret of HS256.
    pub secret_env: Option<String>,
    /// A public key in PEM.
    pub public_key: Option<String>,
    /// The file of one.
    pub public_key_file: Option<PathBuf>,
    /// Where public keys are published.
    pub jwks_url: Option<String>,
    /// Who has to have made a token.
    pub issuer: Option<String>,
    /// Whom a token may be for; an empty list for anybody.
    pub audience: Option<Audience>,
    /// By how much clocks may differ.
    pub leeway_secs: u64,
    /// The claim that names who asks.
    pub subject_claim: String,
}

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum JwtAlgorithm {
    /// With a secret.
    #[serde(rename = "HS256")]
    Hs256,
    /// With an RSA key.
    #[serde(rename = "RS256")]
    Rs256,
    /// With a key on the curve P-256.
    #[serde(rename = "ES256")]
    Es256,
}

/// Whom a token may be for: one, or any of several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Audience {
    /// One.
    One(String),
    /// Any of these.
    AnyOf(Vec<String>),
}

impl Audience {
    /// All of them.
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::AnyOf(names) => names,
        }
    }
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            algorithms: Vec::new(),
            secret_env: None,
            public_key: None,
            public_key_file: None,
            jwks_url: None,
            issuer: None,
            audience: None,
            leeway_secs: 30,
            subject_claim: "sub".to_owned(),
        }
    }
}

impl Jwt {
    /// Checks that the options fit together; whether the key itself is fine is seen when it is read.
    pub(super) fn check(&self, origin: &Origin) -> Result<(), ConfigError> {
        let fault = |option: &str, message: &str| Err(origin.error(&["auth", "jwt", option], message));
        let sources = [
            ("secret_env", self.secret_env.is_some()),
            ("public_key", self.public_key.is_some()),
            ("public_key_file", self.public_key_file.is_some()),
            ("jwks_url", self.jwks_url.is_some()),
        ];
        let mut given = sources.iter().filter(|(_, given)| *given).map(|(name, _)| *name);
        let Some(source) = given.next() else {
            let message = "mode = \"jwt\" needs a key: `secret_env`, `public_key`, `public_key_file` or `jwks_url`";
            return Err(origin.error(&["auth", "jwt"], message));
        };
        if let Some(second) = given.next() {
            return fault(second, &format!("there is `{source}`, too; only one of them can be the key"));
        }
        let by_secret = self.secret_env.is_some();
        if self.algorithms.iter().any(|algorithm| (*algorithm == JwtAlgorithm::Hs256) != by_secret) {
            let message = if by_secret {
                "a secret is for \"HS256\" alone"
            } else {
                "public keys are for \"RS256\" and \"ES256\"; \"HS256\" needs a secret"
            };
            return fault("algorithms", message);
        }
        match &self.audience {
            None => {
                let message = "`audience` is needed: the name by which tokens say that they are for this server (aud). \
                               An empty list lets in tokens that were made for any other application";
                return Err(origin.error(&["auth", "jwt", "audience"], message));
            }
            Some(audience) if audience.names().iter().any(|name| name.trim().is_empty()) => {
                return fault("audience", "a name is empty");
            }
            Some(_) => {}
        }
        if self.issuer.as_ref().is_some_and(|issuer| issuer.trim().is_empty()) {
            return fault("issuer", "it is empty; leave it out to accept any");
        }
        if self.leeway_secs > LONGEST_LEEWAY {
            return fault("leeway_secs", "at most 600: expired tokens are accepted for so long");
        }
        if self.subject_claim.trim().is_empty() {
            return fault("subject_claim", "it is empty");
        }
        Ok(())
    }
}
