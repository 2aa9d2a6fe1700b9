//! The routes below the prefix, and the route that starts a run.

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
use crate::http::{App, extract::Path, fallback, send_message::run_agent};

pub(crate) fn routes(options: &CopilotKitOptions, sockets: Sockets, app: &App) -> Router<App> {
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
