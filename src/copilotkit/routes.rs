//! The routes below the prefix, their list, and the route that starts a run.

use axum::{
    Extension, Router,
    extract::{Request, State},
    routing::{get, patch, post},
};

use super::{
    CopilotKitOptions,
    agents::find_agent,
    connect::connect,
    debug_events::debug_events,
    envelope,
    info::info,
    inspect::{thread_events, thread_messages, thread_state},
    socket::{Sockets, subscribe},
    stop::stop,
    suggest::suggest,
    threads::{archive_thread, delete_thread, list_threads, update_thread},
};
use crate::http::{App, Route, RouteSet, extract::Path, fallback, send_message::run_agent};

const AGENT_ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/copilotkit/info", "lists the agents and the features for pages with CopilotKit"),
    ("GET", "/copilotkit/cpk-debug-events", "streams the events of the caller's runs"),
    ("POST", "/copilotkit/agent/{agent}/run", "runs an agent"),
    ("POST", "/copilotkit/agent/{agent}/connect", "streams a thread and its running run"),
    ("POST", "/copilotkit/agent/{agent}/suggest", "runs an agent, and stores nothing"),
    ("POST", "/copilotkit/agent/{agent}/stop/{thread}", "cancels the running run of a thread"),
];

const THREAD_ROUTES: &[(&str, &str, &str)] = &[
    ("GET", "/copilotkit/threads", "lists the caller's threads"),
    ("POST", "/copilotkit/threads/subscribe", "returns a token for the WebSocket"),
    ("PATCH, DELETE", "/copilotkit/threads/{thread}", "renames, archives or deletes a thread"),
    ("POST", "/copilotkit/threads/{thread}/archive", "archives a thread"),
    ("GET", "/copilotkit/threads/{thread}/messages", "returns the messages of a thread"),
    ("GET", "/copilotkit/threads/{thread}/state", "returns the state of a thread"),
    ("GET", "/copilotkit/threads/{thread}/events", "returns events that restate a thread"),
];

/// Returns the routes: those that need a credential, and the WebSocket, which needs a token.
pub(crate) fn route_sets(options: &CopilotKitOptions, stores_threads: bool) -> [RouteSet; 2] {
    let (sockets, options) = (Sockets::new(options), options.clone());
    let public = sockets.clone();
    [
        RouteSet::private(route_list(&options, stores_threads), move |app| routes(&options, sockets, app)),
        RouteSet::public(Vec::new(), move |app| public.routes(app)),
    ]
}

/// Returns the list of the routes. `GET /` names only the prefix, which is what a page needs.
fn route_list(options: &CopilotKitOptions, stores_threads: bool) -> Vec<Route> {
    if !options.enabled {
        return Vec::new();
    }
    let below_prefix = |template: &str| template.replacen("/copilotkit", &options.prefix, 1);
    let route = |(methods, template, purpose): &(&'static str, &'static str, &'static str)| {
        Route::new(methods, template, *purpose).at(below_prefix(template))
    };
    let runtime = |template| route(&("POST", template, "is the runtime for pages with CopilotKit"));
    let mut routes = vec![runtime("/copilotkit"), runtime("/copilotkit/").part()];
    routes.extend(AGENT_ROUTES.iter().map(route).map(Route::part));
    if stores_threads {
        routes.extend(THREAD_ROUTES.iter().map(route).map(Route::part));
        let socket = ("GET", "/copilotkit/socket/websocket", "reports changes of the caller's threads");
        routes.push(route(&socket).public().part());
    }
    routes
}

fn routes(options: &CopilotKitOptions, sockets: Sockets, app: &App) -> Router<App> {
    if !options.enabled {
        return Router::new();
    }
    let on_disconnect = options.on_disconnect;
    let run = async move |State(app): State<App>, Path(agent): Path<String>, request: Request| {
        run_agent(&app, find_agent(&app, &agent)?, Some(on_disconnect), request).await
    };
    let mut routes = Router::new()
        .route("/info", get(info))
        .route("/cpk-debug-events", get(debug_events))
        .route("/agent/{agent}/run", post(run))
        .route("/agent/{agent}/connect", post(connect))
        .route("/agent/{agent}/suggest", post(suggest))
        .route("/agent/{agent}/stop/{thread}", post(stop));
    if app.threads().is_some() {
        routes = routes
            .route("/threads", get(list_threads))
            .route("/threads/subscribe", post(subscribe))
            .route("/threads/{thread}", patch(update_thread).delete(delete_thread))
            .route("/threads/{thread}/archive", post(archive_thread))
            .route("/threads/{thread}/messages", get(thread_messages))
            .route("/threads/{thread}/state", get(thread_state))
            .route("/threads/{thread}/events", get(thread_events))
            .layer(Extension(sockets));
    }
    let in_envelopes = routes
        .clone()
        .fallback(fallback::no_such_route)
        .method_not_allowed_fallback(fallback::method_not_allowed)
        .with_state(app.clone());
    let envelope =
        post(async move |State(app): State<App>, request: Request| envelope::open(app, in_envelopes, request).await);
    Router::new()
        .nest(&options.prefix, routes)
        .route(&options.prefix, envelope.clone())
        .route(&format!("{}/", options.prefix), envelope)
}
