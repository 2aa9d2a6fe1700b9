//! The checker of JWTs, by the section `[auth.jwt]` of a configuration.

use crate::{
    auth::{JwksOptions, Jwt, JwtOptions, KeyError},
    server::{
        options,
        options::{ConfigError, Origin},
    },
};
use agui_base::upstream::secret_names::secret_variable;

/// Builds the checker. `claims` are the claims that tools need.
pub(super) fn build_jwt(
    jwt: &options::JwtConfig,
    claims: Vec<String>,
    origin: &Origin,
) -> Result<Jwt, ConfigError> {
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
        let secret = secret_variable(variable).map_err(|problem| fault("secret_env", &problem))?;
        Jwt::from_secret(secret.as_bytes(), options).map_err(failed("secret_env"))?
    } else if let Some(pem) = &jwt.public_key {
        Jwt::from_public_key(pem, accepted, options).map_err(failed("public_key"))?
    } else if let Some(path) = &jwt.public_key_file {
        let path = origin.resolve(path);
        let pem = std::fs::read_to_string(&path).map_err(|error| {
            fault("public_key_file", &format!("{} cannot be read: {error}", path.display()))
        })?;
        Jwt::from_public_key(&pem, accepted, options).map_err(failed("public_key_file"))?
    } else {
        let url = jwt.jwks_url.as_deref().unwrap_or_default();
        let fetching = JwksOptions { max_age: jwt.jwks_max_age, ..JwksOptions::default() };
        Jwt::from_jwks(url, accepted, fetching, options).map_err(failed("jwks_url"))?
    };
    if !accepted.is_empty()
        && let Some(unexpected) = built.algorithms().find(|algorithm| !accepted.contains(algorithm))
    {
        return Err(fault(
            "algorithms",
            &format!("the key is for {:?}, which is not among these", unexpected.name()),
        ));
    }
    Ok(built)
}
