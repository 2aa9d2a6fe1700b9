//! What a page with CopilotKit asks of its runtime, so that it needs none: its `runtimeUrl` is this server.
//!
//! | below the prefix | |
//! |---|---|
//! | `GET /info` | the agents, and what else the client may ask for |
//! | `POST /agent/{agent}/run` | a run, which goes on when the page is reloaded |
//! | `POST /agent/{agent}/connect` | a thread restated, and the run that goes on in it |
//! | `POST /agent/{agent}/stop/{thread}` | ends that run |
//! | `GET /threads?agentId=…` | the caller's threads with an agent |
//! | `DELETE /threads/{thread}` | one of them, gone |
//! | `GET /threads/{thread}/messages`, `…/state`, `…/events` | what is in it |
//! | `POST` at the prefix itself | any of these, in an envelope |
//!
//! The wire is that of `@copilotkit/core` 1.75, as its client uses it; runs and threads are the ones that all other
//! routes have. The agent `default`, which CopilotKit asks for where a page names none, is the server's default one,
//! unless an agent has that name.

mod connect;
mod envelope;
mod info;
mod stop;
mod threads;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing::{delete, get, post},
};

use super::{
    App,
    error::{self, ApiError},
    extract::Path,
    send_message,
};
use crate::run::{AgentEntry, OnDisconnect};

/// The agent of a page that names none.
const DEFAULT_AGENT: &str = "default";

/// What a prefix may not begin with, as the server's own routes do.
const TAKEN: [&str; 7] = ["send-message", "agents", "agent", "threads", "healthz", "readyz", "metrics"];

/// How pages with CopilotKit are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopilotKit {
    prefix: String,
    on_disconnect: OnDisconnect,
}

impl Default for CopilotKit {
    fn default() -> Self {
        Self { prefix: "/copilotkit".to_owned(), on_disconnect: OnDisconnect::Continue }
    }
}

impl CopilotKit {
    /// Serves them below a path such as `/copilotkit`.
    ///
    /// # Errors
    /// What is wrong with the path.
    pub fn at(prefix: &str) -> Result<Self, &'static str> {
        let Some(path) = prefix.strip_prefix('/') else {
            return Err("it begins with a slash, as \"/copilotkit\" does");
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        let mut segments = path.split('/');
        if segments.clone().any(|segment| segment.trim_matches('.').is_empty() || !segment.chars().all(plain)) {
            return Err(
                "it is a path such as \"/copilotkit\": of letters, digits, - _ . ~ and slashes, and ends with none",
            );
        }
        if segments.next().is_some_and(|first| TAKEN.contains(&first)) {
            return Err("the server has routes of its own there");
        }
        Ok(Self { prefix: prefix.to_owned(), ..Self::default() })
    }

    /// Sets what happens to a run when its page leaves, unless the run's agent or the request says otherwise.
    pub fn on_disconnect(mut self, on_disconnect: OnDisconnect) -> Self {
        self.on_disconnect = on_disconnect;
        self
    }
}

/// The routes below the prefix.
pub(super) fn routes(options: &CopilotKit, app: &App) -> Router<App> {
    let mut routes = Router::new()
        .route("/info", get(info::info))
        .route("/agent/{agent}/run", post(run))
        .route("/agent/{agent}/connect", post(connect::connect))
        .route("/agent/{agent}/stop/{thread}", post(stop::stop));
    if app.threads().is_some() {
        routes = routes
            .route("/threads", get(threads::list))
            .route("/threads/{thread}", delete(threads::delete))
            .route("/threads/{thread}/messages", get(threads::messages))
            .route("/threads/{thread}/state", get(threads::state))
            .route("/threads/{thread}/events", get(threads::events));
    }
    let enclosed = routes
        .clone()
        .fallback(error::no_such_route)
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(app.clone());
    let envelope =
        post(async move |State(app): State<App>, request: Request| envelope::open(app, enclosed, request).await);
    Router::new()
        .nest(&options.prefix, routes)
        .route(&options.prefix, envelope.clone())
        .route(&format!("{}/", options.prefix), envelope)
}

/// `POST /agent/{agent}/run`
async fn run(State(app): State<App>, Path(agent): Path<String>, request: Request) -> Result<Response, ApiError> {
    let agent = agent_of(&app, &agent)?;
    let usual = app.options().copilotkit.as_ref().map(|options| options.on_disconnect);
    send_message::run_agent(&app, agent, usual, request).await
}

fn agent_of(app: &App, name: &str) -> Result<AgentEntry, ApiError> {
    let named = app.runs().agent(Some(name));
    let found = named.or_else(|| app.runs().agent(None).filter(|_| name == DEFAULT_AGENT));
    found.ok_or_else(|| ApiError::unknown_agent(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_path_that_nothing_else_has() {
        for fine in ["/copilotkit", "/api/copilotkit", "/v1.0/~me/copilot_kit", "/agents-of-mine", "/x/agents"] {
            assert!(CopilotKit::at(fine).is_ok(), "{fine}");
        }
        for bad in [
            "",
            "/",
            "copilotkit",
            "/copilotkit/",
            "//copilotkit",
            "/a//b",
            "/{agent}",
            "/a/{*b}",
            "/a b",
            "/ä",
            "/.",
            "/../a",
            "/agents",
            "/agents/copilotkit",
            "/threads/x",
            "/send-message",
            "/healthz",
            "/a?b",
            "/a#b",
        ] {
            assert!(CopilotKit::at(bad).is_err(), "{bad}");
        }
    }
}
