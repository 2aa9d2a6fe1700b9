//! The options of a configuration as the options of the parts of a server.

use std::collections::BTreeSet;

use crate::{
    auth::{ApiKey, ApiKeys, Authenticator, JwksOptions, Jwt, JwtOptions, KeyError},
    http::{Connections, HttpOptions},
    run::{PrincipalLimits, RunLimits, ThreadOptions},
    server::options::{self, AgentKind, AuthMode, Config, ConfigError, Origin},
    tools::{CallerHeader, CallerValue},
    upstream::secret_names::unset_variable,
};

pub(in crate::server) fn thread_options(config: &Config) -> ThreadOptions {
    let of_agents = config.agents.iter().filter_map(|(name, agent)| Some((name.clone(), agent.common.on_disconnect?)));
    ThreadOptions {
        on_disconnect: config.runs.on_disconnect,
        on_disconnect_of: of_agents.collect(),
        max_detached: config.runs.max_detached,
        max_followers: config.runs.max_followers,
        detached_max: config.runs.detached_max,
        max_continuations: config.runs.max_continuations,
        max_run_bytes: config.runs.max_run_bytes,
        retention: config.retention,
        ..config.threads.clone()
    }
}

pub(in crate::server) fn build_auth(config: &Config, origin: &Origin) -> Result<Authenticator, ConfigError> {
    let (auth, claims) = (&config.auth, needed_claims(config));
    if auth.mode != Some(AuthMode::Jwt) && !claims.is_empty() {
        tracing::warn!(?claims, "`headers_from` names claims, which only the tokens of [auth] mode = \"jwt\" have");
    }
    match auth.mode {
        Some(AuthMode::ApiKey) => {}
        Some(AuthMode::Jwt) => return build_jwt(&auth.jwt, claims, origin).map(Authenticator::from),
        Some(AuthMode::None) | None => return Ok(Authenticator::disabled()),
    }
    let keys = auth.api_keys.iter().map(|key| {
        let fault = |problem: String| origin.error(&["auth", "api_keys"], &format!("key {:?}: {problem}", key.name));
        if let Some(digest) = &key.sha256 {
            return ApiKey::from_sha256(key.name.as_str(), digest).map_err(|error| fault(error.to_string()));
        }
        let variable = key.env.as_deref().unwrap_or_default();
        match std::env::var(variable) {
            Ok(secret) if !secret.trim().is_empty() => Ok(ApiKey::from_secret(key.name.as_str(), secret.trim())),
            _ => Err(fault(unset_variable(variable))),
        }
    });
    let keys = ApiKeys::new(keys.collect::<Result<Vec<_>, _>>()?);
    match keys.find_shared() {
        None => Ok(keys.into()),
        Some([one, other]) => {
            let problem = format!("{one:?} and {other:?} have the same key: give each name a key of its own");
            Err(origin.error(&["auth", "api_keys"], &problem))
        }
    }
}

pub(in crate::server) fn limits(config: &Config) -> RunLimits {
    RunLimits { max: config.runs.max, idle: config.runs.idle, heartbeat: config.server.keep_alive }
}

pub(in crate::server) fn principal_limits(config: &Config) -> PrincipalLimits {
    let is_set = config.limits.concurrent.is_some() || config.limits.per_minute.is_some();
    if is_set && !config.auth.authenticates() {
        tracing::warn!("[limits] has no effect without authentication: set [auth] mode");
    }
    config.limits
}

pub(in crate::server) fn http_options(config: &Config) -> HttpOptions {
    HttpOptions {
        max_body_bytes: config.server.max_body_bytes,
        max_body_bytes_in_flight: config.server.max_body_bytes_in_flight,
        max_answer_bytes_in_flight: config.server.max_answer_bytes_in_flight,
        max_streams: config.server.max_streams,
        keep_alive: config.server.keep_alive,
        body_timeout: config.server.body_timeout,
        cors: config.cors.clone(),
        allowed_hosts: config.server.allowed_hosts.clone(),
        pass_headers: pass_headers(config),
        allow: config.allow.clone(),
        accept_traceparent: config.server.accept_traceparent,
    }
}

pub(in crate::server) fn connections(server: &options::ServerConfig) -> Connections {
    Connections { max: server.max_connections, head_timeout: server.head_timeout, stall_timeout: server.stall_timeout }
}

/// Returns the claims that tools and `[[allow]]` need. Principals keep no others.
pub(super) fn needed_claims(config: &Config) -> Vec<String> {
    let mut claims: Vec<_> = sources(config)
        .filter_map(|from| match from {
            CallerValue::Claim(name) => Some(name.clone()),
            _ => None,
        })
        .chain(config.allow.iter().filter_map(|rule| rule.claim.clone()))
        .collect();
    claims.sort();
    claims.dedup();
    claims
}

/// Returns the request headers that any agent, tool or recording gets, in lower case.
pub(super) fn pass_headers(config: &Config) -> Vec<String> {
    let of_agents = config.agents.values().flat_map(|agent| match &agent.kind {
        AgentKind::Remote(options) => options.pass_headers.as_slice(),
        _ => &[],
    });
    let of_tools = sources(config).filter_map(|from| match from {
        CallerValue::Header(name) => Some(name),
        _ => None,
    });
    let all = of_agents.chain(of_tools).chain(&config.record.headers).map(|name| name.to_ascii_lowercase());
    all.collect::<BTreeSet<_>>().into_iter().collect()
}

fn sources(config: &Config) -> impl Iterator<Item = &CallerValue> {
    let of_tools = config.tools.values().flat_map(|tool| tool.headers_from.values());
    let of_servers = config.mcp.values().flat_map(|server| server.headers_from.values());
    of_tools.chain(of_servers).map(|header: &CallerHeader| &header.from)
}

/// `claims` are those that tools need.
pub(super) fn build_jwt(jwt: &options::JwtConfig, claims: Vec<String>, origin: &Origin) -> Result<Jwt, ConfigError> {
    let fault = |option: &str, message: &str| origin.error(&["auth", "jwt", option], message);
    let failed = |option: &'static str| move |error: KeyError| fault(option, &error.to_string());
    let options = JwtOptions {
        issuer: jwt.issuer.clone(),
        leeway: jwt.leeway,
        subject_claim: jwt.subject_claim.clone(),
        claims,
        ..JwtOptions::new(jwt.audience.iter().flatten())
    };
    let accepted = &jwt.algorithms;
    let built = if let Some(variable) = &jwt.secret_env {
        let secret = std::env::var(variable).unwrap_or_default();
        if secret.trim().is_empty() {
            return Err(fault("secret_env", &unset_variable(variable)));
        }
        Jwt::from_secret(secret.trim().as_bytes(), options).map_err(failed("secret_env"))?
    } else if let Some(pem) = &jwt.public_key {
        Jwt::from_public_key(pem, options).map_err(failed("public_key"))?
    } else if let Some(path) = &jwt.public_key_file {
        let path = origin.resolve(path);
        let pem = std::fs::read_to_string(&path)
            .map_err(|error| fault("public_key_file", &format!("{} cannot be read: {error}", path.display())))?;
        Jwt::from_public_key(&pem, options).map_err(failed("public_key_file"))?
    } else {
        let url = jwt.jwks_url.as_deref().unwrap_or_default();
        let fetching = JwksOptions { max_age: jwt.jwks_max_age, ..JwksOptions::default() };
        Jwt::from_jwks(url, accepted, fetching, options).map_err(failed("jwks_url"))?
    };
    if !accepted.is_empty()
        && let Some(unexpected) = built.algorithms().find(|algorithm| !accepted.contains(algorithm))
    {
        return Err(fault("algorithms", &format!("the key is for {:?}, which is not among these", unexpected.name())));
    }
    Ok(built)
}
