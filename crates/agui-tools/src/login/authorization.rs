//! The authorization server at which a person logs in, and the source of tokens.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use agui_agent::host::LoginError;
use agui_base::text::hex;

const CALLBACK_CHARS: usize = 32;

/// An authorization server, with the client and the scopes for one login.
#[derive(Clone, Serialize, Deserialize)]
pub struct Authorization {
    pub endpoint: String,
    pub scopes: Vec<String>,
    /// `None` if it is not known.
    pub issuer: Option<String>,
    /// True if each return of a browser names the issuer (RFC 9207).
    pub(crate) names_issuer: bool,
    /// The end of the redirect address, which no other authorization server has; `None` for a
    /// configured client whose issuer is not configured.
    pub callback: Option<String>,
    pub source: TokenSource,
}

/// The endpoints that give tokens, and the client that asks for them.
#[derive(Clone, Serialize, Deserialize)]
pub struct TokenSource {
    pub token_endpoint: String,
    pub revocation_endpoint: Option<String>,
    pub client: ClientCredentials,
    /// The resource that the tokens are for (RFC 8707).
    pub resource: Option<String>,
}

/// A way to send a client's secret (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientAuth {
    /// In the header `Authorization`, which all authorization servers accept.
    #[default]
    Basic,
    /// In the body of the request.
    Post,
}

/// A client of an authorization server.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCredentials {
    pub id: String,
    /// `None` for a public client.
    pub secret: Option<String>,
    pub auth: ClientAuth,
}

impl Authorization {
    /// Returns the address to which the browser returns. `base` is the URL of this server.
    pub(super) fn redirect_uri(&self, base: &str) -> String {
        redirect_uri(base, self.callback.as_deref())
    }

    /// Returns the URL at which a browser begins a login. `challenge` is PKCE's, with S256.
    pub(super) fn url(
        &self,
        base: &str,
        state: &str,
        challenge: &str,
    ) -> Result<String, LoginError> {
        let mut url =
            Url::parse(&self.endpoint).map_err(|error| LoginError::Failed(error.to_string()))?;
        let (scope, redirect_uri) = (self.scopes.join(" "), self.redirect_uri(base));
        // OpenID Connect gives a refresh token only with this prompt.
        let prompt = self.scopes.iter().any(|scope| scope == "offline_access").then_some("consent");
        let parameters = [
            ("response_type", Some("code")),
            ("client_id", Some(&*self.source.client.id)),
            ("redirect_uri", Some(&*redirect_uri)),
            ("state", Some(state)),
            ("code_challenge", Some(challenge)),
            ("code_challenge_method", Some("S256")),
            ("resource", self.source.resource.as_deref()),
            ("scope", Some(&*scope).filter(|scope| !scope.is_empty())),
            ("prompt", prompt),
        ];
        url.query_pairs_mut()
            .extend_pairs(parameters.iter().filter_map(|(name, value)| Some((name, (*value)?))));
        Ok(url.into())
    }

    /// Returns whether a browser returns from this authorization server, by the issuer that it
    /// names and by the redirect address: an attacker's server knows other addresses (RFC 9700,
    /// section 4.4.2).
    pub(super) fn is_issuer(&self, named: Option<&str>, callback: Option<&str>) -> bool {
        let is_named = match (named, &self.issuer) {
            (Some(named), Some(issuer)) => named == issuer,
            (Some(_), None) => true,
            (None, _) => !self.names_issuer,
        };
        is_named && self.callback.as_deref() == callback
    }
}

/// Returns the end of the redirect address of an issuer.
pub(crate) fn callback_of(issuer: &str) -> String {
    let mut digest = hex(&Sha256::digest(issuer.trim_end_matches('/')));
    digest.truncate(CALLBACK_CHARS);
    digest
}

/// Returns a redirect address of this server at `base`.
pub(super) fn redirect_uri(base: &str, callback: Option<&str>) -> String {
    let end = callback.map(|callback| format!("/{callback}")).unwrap_or_default();
    format!("{base}/connections/callback{end}")
}
