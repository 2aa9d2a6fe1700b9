//! Advice about a valid configuration: options without effect, and secrets at risk.

use super::callers::needed_claims;
use crate::server::options::{AuthMode, Config, ConfigError, Origin};
use agui_base::upstream::secret_names::{is_secret_header, secret_variable};
use agui_tools::options::HeaderSource;

/// The fewest characters of a key that cannot be guessed.
const MIN_KEY_CHARS: usize = 16;

/// Returns the advice, for people.
///
/// # Errors
/// The file of a system prompt cannot be read.
pub(super) fn advice(config: &Config, origin: &Origin) -> Result<Vec<String>, ConfigError> {
    let claims = needed_claims(config, origin)?;
    let lacks_tokens = config.auth.mode != Some(AuthMode::Jwt) && !claims.is_empty();
    let about_claims = lacks_tokens.then(|| {
        format!(
            "`headers_from`, `allow` or a system prompt names claims ({}), which only tokens have: set [auth] mode = \"jwt\" \
             and [auth.jwt]",
            claims.join(", ")
        )
    });
    let has_limits = config.limits.concurrent.is_some() || config.limits.per_minute.is_some();
    let about_limits = (has_limits && !config.auth.authenticates())
        .then(|| "[limits] has no effect without authentication: set [auth] mode".to_owned());
    let tools = config.tools.iter().map(|(name, tool)| (format!("tools.{name}"), &tool.headers));
    let servers = config.mcp.iter().map(|(name, server)| (format!("mcp.{name}"), &server.headers));
    let about_headers = tools.chain(servers).flat_map(|(table, headers)| {
        let secrets = headers.iter().filter(|(name, value)| is_secret_header(name) && matches!(value, HeaderSource::Text(_)));
        secrets.map(move |(name, _)| {
            format!("{table}: the header {name} looks like a secret: write {{ env = \"VARIABLE\" }}, and put its value into the variable")
        })
    });
    let all =
        about_claims.into_iter().chain(about_limits).chain(about_keys(config)).chain(about_headers);
    Ok(all.collect())
}

fn about_keys(config: &Config) -> impl Iterator<Item = String> {
    let keys = config.auth.api_keys.iter().filter(|_| config.auth.mode == Some(AuthMode::ApiKey));
    let short = keys.filter(|key| {
        let secret = key.env.as_deref().and_then(|variable| secret_variable(variable).ok());
        secret.is_some_and(|secret| secret.chars().count() < MIN_KEY_CHARS)
    });
    short.map(|key| {
        format!(
            "auth.api_keys: the key {:?} has fewer than {MIN_KEY_CHARS} characters, and can be guessed: make one with \
             `openssl rand -hex 32`",
            key.name
        )
    })
}
