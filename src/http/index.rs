//! `GET /`: a description of the server, as a page for browsers, as JSON, or as text for `curl`.
//!
//! With authentication, only callers with a valid credential get it.

use std::fmt::Write as _;

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    ApiError, App, Credential,
    accept::own_address::OwnAddress,
    accepted,
    agents::{AgentSummary, summaries},
    route_list::Route,
};
use agui_protocol::host::PROTOCOL_VERSION;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
                     pre{overflow:auto;padding:1rem;border:1px solid #8888}td{padding-right:1.5rem}";

const DOCUMENTATION: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "#readme");

/// Allows nothing but the style sheet above, by its hash, which a test checks.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'sha256-PPLIXR6SwKYtdoFOPBHajlCUYe3tpB4Sbj7Zs/N9vUw='; base-uri 'none'; \
                                       form-action 'none'; frame-ancestors 'none'";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Html,
    Json,
    Text,
}

#[derive(Serialize, ToSchema)]
struct ServerDescription<'a> {
    name: &'static str,
    version: &'static str,
    protocol: String,
    /// Its address.
    documentation: &'static str,
    /// The path of the playground, if it is served.
    #[serde(skip)]
    playground: Option<String>,
    /// The path of the OpenAPI document.
    #[serde(skip)]
    openapi: String,
    authentication: Credential,
    agents: Vec<AgentSummary>,
    routes: Vec<&'a Route>,
    /// A command to try.
    example: String,
}

/// Describes this server.
///
/// A refusal has that form as well.
#[utoipa::path(
    get,
    path = "/",
    responses(
        (status = 200, description = "The description, in the form that `Accept` names.", content(
            (ServerDescription<'_> = "application/json"),
            (String = "text/html"),
            (String = "text/plain"),
        )),
    ),
)]
pub(crate) async fn describe_server(State(app): State<App>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let format = Format::negotiate(&head.headers);
    let caller = match app.auth.authenticate(&head).await {
        Ok(caller) => caller,
        Err(error) => return format.refuse(error.into()),
    };
    let address = OwnAddress::from_head(&head, app.options.public_url.as_deref());
    let prefix = &address.prefix;
    let playground = app.routes.find("/playground").map(|_| format!("{prefix}/playground"));
    format.respond(&ServerDescription {
        playground,
        openapi: format!("{prefix}/openapi.json"),
        name: "agui-server",
        version: env!("CARGO_PKG_VERSION"),
        protocol: format!("AG-UI {PROTOCOL_VERSION}"),
        documentation: DOCUMENTATION,
        authentication: app.credential(),
        agents: summaries(&app, caller.as_ref()),
        routes: app.routes.listed().collect(),
        example: example(&address.url_at("localhost"), app.credential()),
    })
}

/// Returns a `curl` command that runs the default agent of the server at a URL.
pub(crate) fn example(url: &str, credential: Credential) -> String {
    let credential =
        if credential == Credential::Bearer { " -H \"Authorization: Bearer $KEY\"" } else { "" };
    let input = r#"{"threadId":"t1","runId":"r1","messages":[{"id":"m1","role":"user","content":"Hello"}]}"#;
    format!(
        "curl -N {url}/send-message{credential} -H 'Content-Type: application/json' -d '{input}'"
    )
}

impl Format {
    fn negotiate(headers: &HeaderMap) -> Self {
        let accepts = |media_type: &str| accepted(headers).any(|value| value.contains(media_type));
        match (accepts("text/html"), accepts("application/json")) {
            (true, _) => Self::Html,
            (false, true) => Self::Json,
            (false, false) => Self::Text,
        }
    }

    fn respond(self, description: &ServerDescription<'_>) -> Response {
        match self {
            Self::Json => Json(description).into_response(),
            Self::Html => page(StatusCode::OK, &html(description)),
            Self::Text => text(StatusCode::OK, plain_text(description)),
        }
    }

    fn refuse(self, error: ApiError) -> Response {
        let message = error.to_string();
        let (mut head, json) = error.into_response().into_parts();
        let shown = match self {
            Self::Json => return Response::from_parts(head, json),
            Self::Html => page(head.status, &format!("<p>{}</p>\n", escape(&message))),
            Self::Text => text(head.status, format!("{message}\n")),
        };
        // Keeps the headers of the refusal, and the code that the metrics count.
        let (shown, body) = shown.into_parts();
        head.headers.extend(shown.headers);
        Response::from_parts(head, body)
    }
}

fn plain_text(description: &ServerDescription<'_>) -> String {
    let mut out =
        format!("{} {}, {}\n\n", description.name, description.version, description.protocol);
    out.push_str(authentication(description));
    out.push_str("\n\nAgents:\n");
    for agent in &description.agents {
        let _ = writeln!(out, "  {}", line(agent));
    }
    out.push_str("\nRoutes:\n");
    for route in &description.routes {
        let _ = writeln!(out, "  {:<18} {:<46} {}", route.methods, route.path, route.purpose);
    }
    let _ = write!(out, "\nTry it:\n  {}\n\nDocumentation: {DOCUMENTATION}\n", description.example);
    out
}

fn html(description: &ServerDescription<'_>) -> String {
    let mut out = format!("<h1>{} {}</h1>\n", description.name, description.version);
    let _ = writeln!(out, "<p>{}. {}</p>", description.protocol, authentication(description));
    let playground = description.playground.iter().map(|path| (path.as_str(), "Playground"));
    let links =
        playground.chain([(&*description.openapi, "OpenAPI"), (DOCUMENTATION, "Documentation")]);
    let links: Vec<_> =
        links.map(|(href, text)| format!("<a href=\"{}\">{text}</a>", escape(href))).collect();
    let _ = write!(out, "<p>{}</p>\n<h2>Agents</h2>\n<ul>\n", links.join(" · "));
    for agent in &description.agents {
        let _ = writeln!(out, "<li>{}</li>", escape(&line(agent)));
    }
    let _ = write!(
        out,
        "</ul>\n<h2>Try it</h2>\n<pre>{}</pre>\n<h2>Routes</h2>\n<table>\n",
        escape(&description.example)
    );
    for Route { methods, path, purpose, .. } in &description.routes {
        let (path, purpose) = (escape(path), escape(purpose));
        let _ = writeln!(
            out,
            "<tr><td>{methods}</td><td><code>{path}</code></td><td>{purpose}</td></tr>"
        );
    }
    out.push_str("</table>\n");
    out
}

fn line(agent: &AgentSummary) -> String {
    let default = if agent.default { " (default)" } else { "" };
    let description =
        agent.description.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("{}{default}{description}", agent.name)
}

fn authentication(description: &ServerDescription<'_>) -> &'static str {
    match description.authentication {
        Credential::None => "This server has no authentication: all clients share all threads.",
        Credential::Bearer => "Requests need the header `Authorization: Bearer <key or token>`.",
        Credential::Application => "The application authenticates requests.",
    }
}

fn text(status: StatusCode, body: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    (status, headers, body).into_response()
}

fn page(status: StatusCode, body: &str) -> Response {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>agui-server</title>\
         <style>{STYLE}</style></head>\n<body>\n{body}</body>\n</html>\n"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
    ];
    (status, headers, page).into_response()
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use sha2::Digest as _;

    use super::*;

    #[test]
    fn the_content_security_policy_has_the_hash_of_the_style() {
        let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(STYLE));
        assert!(
            CONTENT_SECURITY_POLICY.contains(&format!("'sha256-{hash}'")),
            "the hash is {hash}"
        );
    }
}
