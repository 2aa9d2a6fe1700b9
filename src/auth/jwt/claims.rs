//! The claims of a token, and the rules for them (RFC 7519, section 4.1).

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::auth::error::TokenError;

/// The claims that tokens must have.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JwtOptions {
    /// The required issuer (`iss`); `None` accepts any.
    pub issuer: Option<String>,
    /// The accepted audiences (`aud`). If empty, tokens that were made for any other application are accepted, too.
    pub audience: Vec<String>,
    /// The largest accepted difference between clocks.
    pub leeway: Duration,
    /// The claim with the principal's name.
    pub subject_claim: String,
    /// The claims that tools can read from the principal ([`Principal::claim`](agui_agent::Principal::claim)).
    pub claims: Vec<String>,
}

impl JwtOptions {
    /// Accepts tokens for one of these audiences.
    pub fn new(audience: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            issuer: None,
            audience: audience.into_iter().map(Into::into).collect(),
            leeway: Duration::from_secs(30),
            subject_claim: "sub".to_owned(),
            claims: Vec::new(),
        }
    }
}

/// Checks the times, the audience and the issuer. Returns the time until which the token is accepted; `None` if no clock
/// reaches it.
pub(super) fn check(
    claims: &Map<String, Value>,
    options: &JwtOptions,
) -> Result<Option<SystemTime>, TokenError> {
    let leeway = options.leeway.as_secs_f64();
    let now =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let exp = seconds(claims, "exp")?.ok_or(TokenError::Claim("exp"))?;
    if exp + leeway < now {
        return Err(TokenError::Expired);
    }
    if seconds(claims, "nbf")?.is_some_and(|nbf| nbf > now + leeway) {
        return Err(TokenError::NotYet);
    }
    check_audience(claims.get("aud"), &options.audience)?;
    match (&options.issuer, claims.get("iss")) {
        (Some(_), None) => return Err(TokenError::Claim("iss")),
        (Some(required), Some(issuer)) if issuer != required => return Err(TokenError::Issuer),
        _ => {}
    }
    let since_1970 = Duration::try_from_secs_f64(exp + leeway).ok();
    Ok(since_1970.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since)))
}

/// A claim with a time, in seconds since 1970.
fn seconds(claims: &Map<String, Value>, name: &'static str) -> Result<Option<f64>, TokenError> {
    claims.get(name).map(|time| time.as_f64().ok_or(TokenError::Claim(name))).transpose()
}

/// A token without `aud` is for nobody, unless any audience is accepted.
fn check_audience(aud: Option<&Value>, accepted: &[String]) -> Result<(), TokenError> {
    let is_accepted = |name: &str| accepted.iter().any(|accepted| accepted == name);
    let fits = match aud {
        _ if accepted.is_empty() => true,
        Some(Value::String(name)) => is_accepted(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is_accepted),
        _ => return Err(TokenError::Claim("aud")),
    };
    if fits { Ok(()) } else { Err(TokenError::Audience) }
}
