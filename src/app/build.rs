//! The options of a configuration as the options of the parts of a server.

use std::{collections::HashMap, time::Duration};

use super::{jwt::build_jwt, remote::pass_headers};
use crate::{
    auth::{ApiKey, ApiKeys, Authenticator},
    config::{self, AuthMode, Config, ConfigError, Origin},
    http::{Connections, Cors, HttpOptions},
    run::{ConcurrentRuns, OnDisconnect, PrincipalLimits, RunLimits, ThreadOptions},
    store::Retention,
};

pub(super) fn thread_options(config: &Config) -> ThreadOptions {
    let (threads, runs, kept) = (&config.threads, &config.runs, &config.retention);
    let own =
        config.agents.iter().filter_map(|(name, agent)| Some((name.clone(), on_disconnect(agent.on_disconnect?))));
    let some = |number: u64| (number > 0).then_some(number);
    let hours = |hours: u64| some(hours.saturating_mul(3_600_000));
    ThreadOptions {
        concurrent_runs: match threads.concurrent_runs {
            config::ConcurrentRuns::Queue => ConcurrentRuns::Queue,
            config::ConcurrentRuns::Reject => ConcurrentRuns::Reject,
            config::ConcurrentRuns::Supersede => ConcurrentRuns::Supersede,
        },
        max_queued: threads.max_queued,
        queue_timeout: Duration::from_secs(threads.queue_timeout_secs),
        accept_instructions: threads.accept_instructions,
        sync_messages: threads.sync_messages,
        max_bytes: threads.max_bytes,
        max_messages: threads.max_messages,
        on_disconnect: on_disconnect(runs.on_disconnect),
        on_disconnect_of: own.collect::<HashMap<_, _>>(),
        max_detached: runs.max_detached,
        detached_max: seconds(runs.detached_max_seconds),
        max_run_bytes: runs.max_run_bytes,
        lease: Duration::from_secs(threads.lease_secs),
        retention: Retention {
            thread_age: hours(kept.thread_days.saturating_mul(24)),
            owner_threads: some(kept.max_threads),
            threads: some(kept.max_threads_total),
            log_age: hours(kept.log_hours),
            logs: some(kept.max_logs),
        },
    }
}

pub(super) fn build_auth(auth: &config::Auth, origin: &Origin) -> Result<Authenticator, ConfigError> {
    match auth.mode {
        Some(AuthMode::ApiKey) => {}
        Some(AuthMode::Jwt) => return build_jwt(&auth.jwt, origin).map(Authenticator::from),
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
            _ => Err(fault(format!("the environment variable {variable} is not set"))),
        }
    });
    Ok(ApiKeys::new(keys.collect::<Result<Vec<_>, _>>()?).into())
}

fn on_disconnect(setting: config::OnDisconnect) -> OnDisconnect {
    match setting {
        config::OnDisconnect::Cancel => OnDisconnect::Cancel,
        config::OnDisconnect::Continue => OnDisconnect::Continue,
    }
}

/// Returns a duration; 0 means no limit.
fn seconds(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

pub(super) fn limits(config: &Config) -> RunLimits {
    RunLimits {
        max: seconds(config.runs.max_seconds),
        idle: seconds(config.runs.idle_seconds),
        heartbeat: seconds(config.server.keep_alive_secs),
    }
}

pub(super) fn principal_limits(config: &Config) -> PrincipalLimits {
    let some = |number: usize| (number > 0).then_some(number);
    let limits = PrincipalLimits {
        concurrent: some(config.limits.concurrent_runs),
        per_minute: some(config.limits.runs_per_minute),
    };
    if limits != PrincipalLimits::default() && !authenticates(config) {
        tracing::warn!("[limits] have no effect without authentication: set auth.mode");
    }
    limits
}

/// Returns whether callers must authenticate.
fn authenticates(config: &Config) -> bool {
    matches!(config.auth.mode, Some(AuthMode::ApiKey | AuthMode::Jwt))
}

pub(super) fn http_options(config: &Config) -> HttpOptions {
    HttpOptions {
        max_body_bytes: config.server.max_body_bytes,
        keep_alive: seconds(config.server.keep_alive_secs),
        body_timeout: Duration::from_secs(config.server.body_timeout_secs),
        cors: Cors { allow_localhost: config.cors.allow_localhost, allow_origins: config.cors.allow_origins.clone() },
        loopback_hosts_only: config.auth.allow_unauthenticated.then_some(false),
        pass_headers: pass_headers(config),
    }
}

pub(super) fn connections(server: &config::Server) -> Connections {
    Connections {
        head_timeout: Duration::from_secs(server.head_timeout_secs),
        stall_timeout: Duration::from_secs(server.stall_timeout_secs),
    }
}
