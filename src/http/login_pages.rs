//! The pages on which a person logs in at another server, for browsers: `/connections/start` and `/connections/callback`.
//!
//! A browser that follows a link has no credential. The link is one: it is sealed, and names its owner. The first browser that
//! opens it gets a cookie, and is the only one that can go on. The page names the owner, so that who follows a link of somebody
//! else sees whom the access would be given to.

use std::sync::Arc;

use axum::{
    Extension,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use super::{App, Query, RouteAccess, RouteSet, index::escape};
use crate::agent::{LoginError, Logins, OpenedLink, Returned};

const COOKIE: &str = "agui-server-login";
/// In seconds.
const COOKIE_TIME: u32 = 20 * 60;
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;\
                     color-scheme:light dark}a{display:inline-block;padding:.5rem 1rem;border:1px solid;border-radius:.4rem}";

pub(super) fn route_set(logins: Arc<dyn Logins>) -> RouteSet {
    let routes: OpenApiRouter<App> = OpenApiRouter::new().routes(routes!(start_login)).routes(routes!(finish_login));
    RouteSet::new("connections", RouteAccess::Public, routes.layer(Extension(logins)))
}

#[derive(Deserialize)]
struct StartParameters {
    #[serde(default)]
    link: String,
    go: Option<String>,
}

/// Is the page that a person opens to log in at another server.
///
/// It leads to that server's authorization server. The link is in an interrupt, for one browser and ten minutes.
#[utoipa::path(
    get,
    path = "/connections/start",
    params(
        ("link" = String, Query, description = "From the interrupt."),
        ("go" = Option<String>, Query, description = "The person has seen what the login is for."),
    ),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 303, description = "The authorization server."),
        (status = 403, description = "The link is not valid in this browser, or no longer.", body = String, content_type = "text/html"),
        (status = 502, description = "The other server permits no login.", body = String, content_type = "text/html"),
    ),
)]
async fn start_login(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Query(StartParameters { link, go }): Query<StartParameters>,
    headers: HeaderMap,
) -> Response {
    let known = browser_of(&headers);
    let browser =
        known.clone().unwrap_or_else(|| [Uuid::new_v4(), Uuid::new_v4()].map(|id| id.simple().to_string()).concat());
    // A browser without a cookie cannot have seen the page.
    if go.is_some() && known.is_some() {
        return match logins.authorize(&link, &browser).await {
            Ok(url) => redirect(&url),
            Err(error) => refused(&error),
        };
    }
    match logins.open(&link, &browser).await {
        Ok(opened) => with_cookie(page(StatusCode::OK, &question(&opened, &link)), &*logins, &browser),
        Err(error) => refused(&error),
    }
}

/// Ends a login: the authorization server leads the browser here.
#[utoipa::path(
    get,
    path = "/connections/callback",
    params(
        ("state" = String, Query, description = "As it was sent."),
        ("code" = Option<String>, Query, description = "Is changed for tokens."),
        ("iss" = Option<String>, Query, description = "The authorization server (RFC 9207)."),
        ("error" = Option<String>, Query, description = "Why there is no code."),
        ("error_description" = Option<String>, Query, description = "The same for people."),
    ),
    responses(
        (status = 200, description = "A page: the person is logged in.", body = String, content_type = "text/html"),
        (status = 403, description = "The login is not one of this browser, or has ended.", body = String, content_type = "text/html"),
        (status = 502, description = "There are no tokens.", body = String, content_type = "text/html"),
    ),
)]
async fn finish_login(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Query(returned): Query<Returned>,
    headers: HeaderMap,
) -> Response {
    let browser = browser_of(&headers).unwrap_or_default();
    match logins.finish(returned, &browser).await {
        Ok(server) => {
            let text = format!(
                "<h1>Connected</h1><p>Your account at <b>{}</b> is connected. Close this page, go back to the conversation, and say there that you are done.</p>",
                escape(&server)
            );
            page(StatusCode::OK, &text)
        }
        Err(error) => refused(&error),
    }
}

fn question(OpenedLink { server, host, owner }: &OpenedLink, link: &str) -> String {
    let [server, host, owner] = [server, host, owner].map(|text| escape(text));
    let whom = if owner == crate::store::ThreadKey::ANONYMOUS {
        "everybody who reaches this server".to_owned()
    } else {
        format!("<b>{owner}</b>")
    };
    let link = utf8_percent_encode(link, NON_ALPHANUMERIC);
    format!(
        "<h1>Connect {server}</h1><p>You are about to log in at <b>{host}</b>. Conversations of {whom} can then use your \
         account there. If these are not your conversations, or you did not ask for this, close this page.</p>\
         <p><a href=\"?link={link}&amp;go=1\">Log in at {host}</a></p>"
    )
}

fn refused(error: &LoginError) -> Response {
    let (status, heading) = match error {
        LoginError::Refused(_) => (StatusCode::FORBIDDEN, "This link does not work"),
        LoginError::Failed(_) => (StatusCode::BAD_GATEWAY, "The login has failed"),
        LoginError::Store(_) => (StatusCode::SERVICE_UNAVAILABLE, "Try again later"),
    };
    tracing::info!(?error, "a login is refused");
    page(status, &format!("<h1>{heading}</h1><p>{}</p>", escape(&error.to_string())))
}

fn page(status: StatusCode, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Login</title><style>{STYLE}</style>{body}</html>"
    );
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // The links of this server and the codes of others are not for anyone else.
        (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
    ];
    (status, headers, html).into_response()
}

fn redirect(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        return refused(&LoginError::Failed("the URL of the authorization server is not valid".to_owned()));
    };
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

/// Sets the cookie of a browser, for the pages of logins alone.
fn with_cookie(mut response: Response, logins: &dyn Logins, browser: &str) -> Response {
    let base = logins.base_url();
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let slash = if path.is_empty() { "" } else { "/" };
    let secure = if base.starts_with("https:") { "; Secure" } else { "" };
    let cookie = format!(
        "{COOKIE}={browser}; Path={slash}{path}/connections; Max-Age={COOKIE_TIME}; HttpOnly; SameSite=Lax{secure}"
    );
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn browser_of(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies.flat_map(|list| list.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    let (_, browser) = cookies.find(|(name, _)| *name == COOKIE)?;
    (browser.len() == 64 && browser.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| browser.to_owned())
}
