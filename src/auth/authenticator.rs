//! The ways to authenticate a request, behind one type.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use http::{HeaderMap, header::AUTHORIZATION, request::Parts};

use crate::auth::{ApiKey, AuthError};
use agui_agent::{Principal, host::is_valid_name};
use agui_base::memory_budget::Sharing;

/// Finds the [`Principal`] of a request. Cheap to clone. [`Jwt`](super::Jwt) converts
/// into one.
#[derive(Clone, Default)]
pub struct Authenticator {
    method: Option<Arc<dyn Authenticate>>,
    /// True if the requests that the method accepts have no principal.
    is_anonymous: bool,
}

impl Authenticator {
    /// Accepts all requests, without a principal. This is the default.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// Accepts the same requests, but without a principal: a command calls the server in its own
    /// process.
    pub(crate) fn without_principal(self) -> Self {
        Self { is_anonymous: true, ..self }
    }

    /// Asks an async function, before the request's body is read, also for requests that start no run.
    ///
    /// ```
    /// use agui_server::auth::{AuthError, Authenticator, Principal};
    /// use axum::http::request::Parts;
    /// # async fn find_session(cookie: &str) -> std::io::Result<Option<String>> { Ok(Some(cookie.to_owned())) }
    ///
    /// let authenticator = Authenticator::from_fn(|request: Parts| async move {
    ///     let cookie = request.headers.get("cookie").and_then(|value| value.to_str().ok());
    ///     let cookie = cookie.ok_or(AuthError::refused("sign in first: the request has no cookie"))?;
    ///     match find_session(cookie).await.map_err(AuthError::failed)? {
    ///         Some(user) => Ok(Principal::new("session", &user)),
    ///         None => Err(AuthError::refused("the session has ended: sign in again")),
    ///     }
    /// });
    /// ```
    pub fn from_fn<F, Fut>(function: F) -> Self
    where
        F: Fn(Parts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Principal, AuthError>> + Send + 'static,
    {
        Self::new(FromFn(function))
    }

    /// Takes the [`Principal`] from the request's extensions. Requests without one are refused with 401.
    pub fn from_extension() -> Self {
        Self::from_fn(|request: Parts| async move {
            let principal = request.extensions.get::<Principal>().cloned();
            principal.ok_or(AuthError::refused("the request is not authenticated"))
        })
    }

    /// True if all requests are accepted, without a principal.
    pub fn is_disabled(&self) -> bool {
        self.method.is_none()
    }

    /// The name of the method, for the log.
    pub(crate) fn method(&self) -> &'static str {
        self.method.as_ref().map_or("none", |method| method.mode().unwrap_or("by the application"))
    }

    /// True if callers send their credential as `Authorization: Bearer …`.
    pub fn expects_bearer(&self) -> bool {
        self.method.as_ref().is_some_and(|method| method.mode().is_some())
    }

    /// True if no two requests can have different principals: without authentication, and with one API key.
    pub fn has_one_principal(&self) -> bool {
        let is_same =
            |keys: &[ApiKey]| keys.windows(2).all(|keys| keys[0].principal == keys[1].principal);
        self.method.as_ref().is_none_or(|method| method.api_keys().is_some_and(is_same))
    }

    pub(crate) fn sharing(&self) -> Sharing {
        if self.has_one_principal() { Sharing::SingleOwner } else { Sharing::PerOwner }
    }

    /// The API keys that are accepted, if the method has any.
    pub(crate) fn api_keys(&self) -> &[ApiKey] {
        self.method.as_ref().and_then(|method| method.api_keys()).unwrap_or_default()
    }

    /// Returns the principal of a request; `None` if it has none, as without authentication.
    ///
    /// # Errors
    /// If the request was refused, or could not be checked.
    pub async fn authenticate(&self, request: &Parts) -> Result<Option<Principal>, AuthError> {
        match &self.method {
            None => Ok(None),
            Some(method) => method
                .authenticate(request)
                .await
                .map(|principal| (!self.is_anonymous).then_some(principal)),
        }
    }

    pub(super) fn new(method: impl Authenticate + 'static) -> Self {
        Self { method: Some(Arc::new(method)), is_anonymous: false }
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("is_disabled", &self.is_disabled())
            .finish_non_exhaustive()
    }
}

#[async_trait]
pub(super) trait Authenticate: Send + Sync {
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError>;

    /// The name of a method of `[auth] mode`, whose callers send a bearer token; `None` for one of the application.
    fn mode(&self) -> Option<&'static str> {
        None
    }

    /// The keys that are accepted, if the method has keys.
    fn api_keys(&self) -> Option<&[ApiKey]> {
        None
    }
}

/// Returns the token of the `Authorization: Bearer` header (RFC 6750).
pub(super) fn bearer_token(headers: &HeaderMap) -> Result<&[u8], AuthError> {
    let header = headers.get(AUTHORIZATION).ok_or(AuthError::Missing)?;
    let (scheme, token) = header.as_bytes().split_at_checked(7).ok_or(AuthError::NotBearer)?;
    let token = token.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty() {
        Ok(token)
    } else {
        Err(AuthError::NotBearer)
    }
}

struct FromFn<F>(F);

#[async_trait]
impl<F, Fut> Authenticate for FromFn<F>
where
    F: Fn(Parts) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Principal, AuthError>> + Send + 'static,
{
    async fn authenticate(&self, request: &Parts) -> Result<Principal, AuthError> {
        let principal = (self.0)(request.clone()).await?;
        if is_valid_name(principal.name()) {
            Ok(principal)
        } else {
            Err(AuthError::failed(
                "the principal's name is not 1 to 256 bytes without control characters",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(authorization: Option<&str>) -> Parts {
        let mut request = http::Request::new(());
        if let Some(value) = authorization {
            request.headers_mut().insert(AUTHORIZATION, value.parse().unwrap());
        }
        request.into_parts().0
    }

    #[test]
    fn a_bearer_header_may_have_any_case_and_spacing() {
        assert_eq!(bearer_token(&request(Some("Bearer abc")).headers).unwrap(), b"abc");
        assert_eq!(bearer_token(&request(Some("bEARER   abc ")).headers).unwrap(), b"abc");
        for header in ["", "Bearer", "Bearer ", "Basic abc", "abc"] {
            assert!(
                matches!(bearer_token(&request(Some(header)).headers), Err(AuthError::NotBearer)),
                "{header}"
            );
        }
        assert!(matches!(bearer_token(&HeaderMap::new()), Err(AuthError::Missing)));
    }

    #[tokio::test]
    async fn a_function_gets_the_request_and_returns_its_principal() {
        let authenticator = Authenticator::from_fn(|request: Parts| async move {
            match request.headers.get(AUTHORIZATION).map(|value| value.as_bytes()) {
                Some(b"ada") => Ok(Principal::new("test", "ada")),
                Some(b"two\tlines") => Ok(Principal::new("test", "two\nlines")),
                Some(_) => Err(AuthError::refused("unknown user")),
                None => Err(AuthError::failed(std::io::Error::other("the database is down"))),
            }
        });
        let ada = authenticator.authenticate(&request(Some("ada"))).await.unwrap().unwrap();
        assert_eq!(ada.id(), "test:ada");
        let refused = authenticator.authenticate(&request(Some("bob"))).await.unwrap_err();
        assert_eq!(refused.to_string(), "unknown user");
        for authorization in [None, Some("two\tlines")] {
            let failed = authenticator.authenticate(&request(authorization)).await;
            assert!(matches!(failed, Err(AuthError::Failed(_))), "{failed:?}");
        }
    }

    #[tokio::test]
    async fn a_principal_is_taken_from_the_extensions() {
        let authenticator = Authenticator::from_extension();
        let mut request = request(Some("Bearer anything"));
        assert!(matches!(authenticator.authenticate(&request).await, Err(AuthError::Refused(_))));
        request.extensions.insert(Principal::new("app", "ada"));
        assert_eq!(authenticator.authenticate(&request).await.unwrap().unwrap().id(), "app:ada");
    }

    #[tokio::test]
    async fn a_disabled_authenticator_accepts_requests_without_a_principal() {
        assert_eq!(Authenticator::disabled().authenticate(&request(None)).await.unwrap(), None);
        assert!(
            Authenticator::default().is_disabled()
                && !Authenticator::from_extension().is_disabled()
        );
    }
}
