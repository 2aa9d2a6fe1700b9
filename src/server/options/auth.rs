//! The section `[auth]`.

use serde::Deserialize;

use super::{
    diagnose::ConfigError,
    jwt::{self, JwtConfig},
    origin::Origin,
};

/// Authentication: the section `[auth]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthConfig {
    /// The way clients authenticate. A server without it has no authentication. A thread belongs to
    /// the principal that created it: the key's name, or the token's subject.
    pub(crate) mode: Option<AuthMode>,
    /// The keys of `mode = "api_key"`: each has a name, and either the environment variable with
    /// the key, or the SHA-256 of the key (`printf %s "$KEY" | sha256sum`). A name can have several
    /// keys, for their rotation (docs/configuration.md).
    pub(crate) api_keys: Vec<ApiKeyConfig>,
    /// The rules for tokens of `mode = "jwt"`.
    pub(crate) jwt: JwtConfig,
    /// With `mode = "none"`: true allows to listen on any address. Every client that can reach it shares all threads.
    pub(crate) allow_unauthenticated: bool,
}

/// A way to authenticate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum AuthMode {
    /// No authentication. The server listens on this machine only, unless `allow_unauthenticated`
    /// is set, and answers under localhost, IP addresses and `allowed_hosts` of `[server]`.
    None,
    /// `Authorization: Bearer <key>`, with one of `api_keys`.
    ApiKey,
    /// `Authorization: Bearer <token>`, with a token (JWT) of an identity provider; see
    /// `[auth.jwt]` and jwt.toml.
    Jwt,
}

/// A named key: in an environment variable, or as a digest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiKeyConfig {
    /// The name of the key, which becomes the principal's name. A name can have several keys, for their rotation.
    pub(crate) name: String,
    /// The environment variable with the key. Either this or `sha256` is needed.
    pub(crate) env: Option<String>,
    /// The SHA-256 of the key, in hexadecimal: `printf %s "$KEY" | sha256sum`.
    pub(crate) sha256: Option<String>,
}

impl AuthConfig {
    /// True if callers must send a credential.
    pub(crate) fn authenticates(&self) -> bool {
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
    }
    match auth.mode {
        Some(AuthMode::ApiKey) if auth.api_keys.is_empty() => {
            Err(origin.error(&["auth", "mode"], "\"api_key\" needs at least one of `api_keys`"))
        }
        Some(AuthMode::Jwt) => jwt::check(&auth.jwt, origin),
        None if !auth.api_keys.is_empty() => Err(origin.error(
            &keys,
            "`mode` is not set: set it to \"api_key\" to use the keys, or to \"none\"",
        )),
        None if auth.jwt != JwtConfig::default() => {
            let message = "`mode` is not set: set it to \"jwt\" to check tokens, or to \"none\"";
            Err(origin.error(&["auth", "jwt"], message))
        }
        _ => Ok(()),
    }
}
