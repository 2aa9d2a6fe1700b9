//! The section `[auth]`.

use serde::Deserialize;

use super::{
    diagnose::ConfigError,
    jwt::{self, JwtConfig},
    origin::Origin,
};

/// The section `[auth]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AuthConfig {
    /// The way callers authenticate; `None` if it is not set, which works like [`AuthMode::None`].
    pub mode: Option<AuthMode>,
    /// The keys of `mode = "api_key"`.
    pub api_keys: Vec<ApiKeyConfig>,
    /// The rules for tokens of `mode = "jwt"`.
    pub jwt: JwtConfig,
    /// With `mode = "none"`: may listen on every address, not only on the loopback.
    pub allow_unauthenticated: bool,
}

/// A way to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuthMode {
    /// No authentication; without `allow_unauthenticated` the server serves this machine only.
    None,
    /// `Authorization: Bearer <key>`.
    ApiKey,
    /// `Authorization: Bearer <token>`, with a token that an identity provider signed.
    Jwt,
}

/// A named key: in an environment variable, or as a digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKeyConfig {
    /// The name of the key, which becomes the principal's name.
    pub name: String,
    /// The environment variable with the key.
    pub env: Option<String>,
    /// The SHA-256 of the key, in hexadecimal.
    pub sha256: Option<String>,
}

impl AuthConfig {
    /// True if callers must send a credential.
    pub fn authenticates(&self) -> bool {
        matches!(self.mode, Some(AuthMode::ApiKey | AuthMode::Jwt))
    }
}

pub(super) fn check(auth: &AuthConfig, origin: &Origin) -> Result<(), ConfigError> {
    let keys = ["auth", "api_keys"];
    for key in &auth.api_keys {
        if key.env.is_some() == key.sha256.is_some() {
            let message = format!("the key {:?} needs either `env` or `sha256`", key.name);
            return Err(origin.error(&keys, &message));
        }
        if auth.api_keys.iter().filter(|other| other.name == key.name).count() > 1 {
            return Err(origin.error(&keys, &format!("there are two keys named {:?}", key.name)));
        }
    }
    match auth.mode {
        Some(AuthMode::ApiKey) if auth.api_keys.is_empty() => {
            Err(origin.error(&["auth", "mode"], "\"api_key\" needs at least one of `api_keys`"))
        }
        Some(AuthMode::Jwt) => jwt::check(&auth.jwt, origin),
        None if !auth.api_keys.is_empty() => {
            Err(origin.error(&keys, "`mode` is not set: set it to \"api_key\" to use the keys, or to \"none\""))
        }
        None if auth.jwt != JwtConfig::default() => {
            let message = "`mode` is not set: set it to \"jwt\" to check tokens, or to \"none\"";
            Err(origin.error(&["auth", "jwt"], message))
        }
        _ => Ok(()),
    }
}
