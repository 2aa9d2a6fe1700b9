//! The routes below the prefix, and the route that starts a run.

use axum::{
    Router,
    extract::{Request, State},
    routing::{delete, get, post},
};

use super::{
    CopilotKitOptions,
    agents::find_agent,
    connect::connect,
    envelope,
    info::info,
    stop::stop,
    threads::{delete_thread, list_threads, thread_events, thread_messages, thread_state},
};
use crate::http::{App, extract::Path, fallback, send_message::run_agent};

/// # Panics
/// If the prefix is invalid.
pub(crate) fn routes(options: &CopilotKitOptions, app: &App) -> Router<App> {
    if !options.enabled {
        return Router::new();
    }
    if let Err(problem) = options.check_prefix() {
        panic!("invalid prefix {:?} of the CopilotKit routes: {problem}", options.prefix);
    }
    let on_disconnect = options.on_disconnect;
    let run = async move |State(app): State<App>, Path(agent): Path<String>, request: Request| {
        run_agent(&app, find_agent(&app, &agent)?, Some(on_disconnect), request).await
    };
    let mut routes = Router::new()
        .route("/info", get(info))
        .route("/agent/{agent}/run", post(run))
        .route("/agent/{agent}/connect", post(connect))
        .route("/agent/{agent}/stop/{thread}", post(stop));
    if app.threads().is_some() {
        routes = routes
            .route("/threads", get(list_threads))
            .route("/threads/{thread}", delete(delete_thread))
            .route("/threads/{thread}/messages", get(thread_messages))
            .route("/threads/{thread}/state", get(thread_state))
            .route("/threads/{thread}/events", get(thread_events));
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
