//! The pages on which a person logs in at another server, for browsers: `/accounts/start` and
//! `/connections/callback`.
//!
//! A browser that follows a link sends no credential, so the link is one: it is sealed, and names
//! its owner. The first browser that opens it gets a cookie, and all others are refused. The page
//! names the owner: a person who follows the link of somebody else sees who would get the access.
//!
//! **No login begins without this page**: its button sends a value that only the page has, and that
//! works once.

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

use super::{
    App, Path, Query, RouteAccess, RouteSet, Tag, accept::foreign_page::is_own_page, index::escape,
};
use agui_agent::host::{LoginError, Logins, OpenedLink, Returned};

const COOKIE: &str = "agui-server-login";
/// In seconds.
const COOKIE_TIME: u32 = 20 * 60;
/// Without `form-action`: browsers apply it to the redirect to the authorization server, too.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";
/// The button comes late, so that the second click of a double click, which began on another page, does not press it.
const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;\
                     color-scheme:light dark}button{font:inherit;padding:.5rem 1rem;border:1px solid;border-radius:.4rem;\
                     animation:shown 1s step-end}@keyframes shown{from{visibility:hidden}}";

/// The links of this server and the codes of others are for no other site, and a window that has opened a page cannot steer it. The
/// own site gets the referrer: without it, the form would have no origin.
const PRIVATE: [(HeaderName, HeaderValue); 2] = [
    (HeaderName::from_static("referrer-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

pub(super) const ACCOUNTS: Tag = ("accounts", "The caller's accounts at other services.");

pub(super) fn route_set(logins: Arc<dyn Logins>) -> RouteSet {
    let routes: OpenApiRouter<App> = OpenApiRouter::new().routes(routes!(start_login, go_to_login));
    let routes = routes.routes(routes!(finish_login)).routes(routes!(finish_login_of_issuer));
    RouteSet::new(ACCOUNTS, RouteAccess::Public, routes.layer(Extension(logins)))
}

#[derive(Deserialize)]
struct StartParameters {
    #[serde(default)]
    link: String,
    #[serde(default)]
    button: String,
}

/// Shows the page on which a person logs in at another server.
///
/// The link is in an interrupt, for one browser and ten minutes.
#[utoipa::path(
    get,
    path = "/accounts/start",
    params(("link" = String, Query, description = "From the interrupt.")),
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        (status = 403, description = "The link is not valid in this browser, or no longer.", body = String, content_type = "text/html"),
    ),
)]
async fn start_login(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Query(StartParameters { link, .. }): Query<StartParameters>,
    headers: HeaderMap,
) -> Response {
    let browser = browser_of(&*logins, &headers).unwrap_or_else(|| {
        [Uuid::new_v4(), Uuid::new_v4()].map(|id| id.simple().to_string()).concat()
    });
    match logins.open(&link, &browser).await {
        Ok(opened) => {
            with_cookie(page(StatusCode::OK, &question(&opened, &link)), &*logins, &browser)
        }
        Err(error) => refused(&error),
    }
}

/// Leads from the button of that page to the authorization server.
#[utoipa::path(
    post,
    path = "/accounts/start",
    params(
        ("link" = String, Query, description = "From the interrupt."),
        ("button" = String, Query, description = "From the page, once."),
    ),
    responses(
        (status = 303, description = "The authorization server."),
        (status = 403, description = "The button is not that of the page which this browser shows.", body = String, content_type = "text/html"),
        (status = 502, description = "The other server permits no login.", body = String, content_type = "text/html"),
    ),
)]
async fn go_to_login(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Query(StartParameters { link, button }): Query<StartParameters>,
    headers: HeaderMap,
) -> Response {
    if !is_own_page(&headers) {
        return refused(&LoginError::Refused(
            "Another page has sent this. Open the link, and press the button there.",
        ));
    }
    let browser = browser_of(&*logins, &headers).unwrap_or_default();
    match logins.authorize(&link, &button, &browser).await {
        Ok(url) => redirect(&url),
        Err(error) => refused(&error),
    }
}

/// Ends a login: the authorization server leads the browser here if its client is configured without its issuer.
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
    finish(&*logins, returned, None, &headers).await
}

/// Ends a login: the authorization server leads the browser here.
///
/// Each has an address of its own, so that none is mistaken for another one (RFC 9700, 4.4.2).
#[utoipa::path(
    get,
    path = "/connections/callback/{issuer}",
    params(
        ("issuer" = String, Path, description = "A digest of its issuer, which `agui-server check` prints."),
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
async fn finish_login_of_issuer(
    Extension(logins): Extension<Arc<dyn Logins>>,
    Path(issuer): Path<String>,
    Query(returned): Query<Returned>,
    headers: HeaderMap,
) -> Response {
    finish(&*logins, returned, Some(&issuer), &headers).await
}

async fn finish(
    logins: &dyn Logins,
    returned: Returned,
    callback: Option<&str>,
    headers: &HeaderMap,
) -> Response {
    let browser = browser_of(logins, headers).unwrap_or_default();
    match logins.finish(returned, callback, &browser).await {
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

fn question(OpenedLink { server, host, owner, button }: &OpenedLink, link: &str) -> String {
    let [server, host, owner] = [server, host, owner].map(|text| escape(text));
    let whom = if owner == agui_store::ThreadKey::ANONYMOUS {
        "everybody who reaches this server".to_owned()
    } else {
        format!("<b>{owner}</b>")
    };
    let link = utf8_percent_encode(link, NON_ALPHANUMERIC);
    format!(
        "<h1>Connect {server}</h1><p>You are about to log in at <b>{host}</b>. Conversations of {whom} can then use your \
         account there. If these are not your conversations, or you did not ask for this, close this page.</p>\
         <form method=\"post\" action=\"?link={link}&amp;button={button}\"><button>Log in at {host}</button></form>"
    )
}

fn refused(error: &LoginError) -> Response {
    let (status, heading) = match error {
        LoginError::Refused(_) => (StatusCode::FORBIDDEN, "This link does not work"),
        LoginError::Failed(_) => (StatusCode::BAD_GATEWAY, "The login has failed"),
        LoginError::Store(_) => (StatusCode::SERVICE_UNAVAILABLE, "Try again later"),
    };
    tracing::info!(?error, "a login is refused");
    let advice = match error {
        LoginError::Failed(_) => {
            "<p>Go back to the conversation, and answer there: you are asked again with a new link.</p>"
        }
        LoginError::Refused(_) | LoginError::Store(_) => "",
    };
    page(status, &format!("<h1>{heading}</h1><p>{}</p>{advice}", escape(&error.to_string())))
}

fn page(status: StatusCode, body: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Login</title><style>{STYLE}</style>{body}</html>"
    );
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    (status, PRIVATE, headers, html).into_response()
}

fn redirect(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else {
        return refused(&LoginError::Failed(
            "the URL of the authorization server is not valid".to_owned(),
        ));
    };
    (StatusCode::SEE_OTHER, PRIVATE, [(header::LOCATION, location)]).into_response()
}

/// Sets the cookie of a browser. With https, no other host, also none of the same site, can set it (`__Host-`).
fn with_cookie(mut response: Response, logins: &dyn Logins, browser: &str) -> Response {
    let (prefix, secure) = cookie_kind(logins);
    let cookie = format!(
        "{prefix}{COOKIE}={browser}; Path=/; Max-Age={COOKIE_TIME}; HttpOnly; SameSite=Lax{secure}"
    );
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

fn cookie_kind(logins: &dyn Logins) -> (&'static str, &'static str) {
    if logins.base_url().starts_with("https:") { ("__Host-", "; Secure") } else { ("", "") }
}

fn browser_of(logins: &dyn Logins, headers: &HeaderMap) -> Option<String> {
    let (prefix, _) = cookie_kind(logins);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies =
        cookies.flat_map(|list| list.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    let (_, browser) = cookies.find(|(name, _)| name.strip_prefix(prefix) == Some(COOKIE))?;
    (browser.len() == 64 && browser.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| browser.to_owned())
}
