//! A server mounted in an axum application, with the application's own sign-in, tracing and shutdown:
//! `cargo run --example mounted [PORT]`
//!
//! ```sh
//! curl -N http://127.0.0.1:8080/agents/send-message -H 'Content-Type: application/json' -H 'Cookie: user=ada' -d \
//!   '{"threadId":"t1","runId":"r1","messages":[{"id":"m1","role":"user","content":"Hello"}]}'
//! curl http://127.0.0.1:8080/agents/threads/t1 -H 'Cookie: user=ada'    # ada's thread
//! curl http://127.0.0.1:8080/agents/threads/t1 -H 'Cookie: user=bob'    # 404: bob has no such thread
//! ```
//!
//! Stop it with Ctrl-C: new runs are refused, running ones have 10 seconds, then the process ends.

use std::time::Duration;

use agui_server::{auth::Authenticator, prelude::*, shutdown_signal};
use axum::{
    Router,
    extract::Request,
    http::header,
    middleware::{Next, from_fn},
    response::Response,
    routing::get,
};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server logs with `tracing`; the application selects the output.
    tracing_subscriber::fmt().with_env_filter("info").init();

    let (agents, handle) = Server::new()
        .agent("greeter", agent_fn(greet))
        .authenticator(Authenticator::from_extension())
        .drain(Duration::from_secs(10))
        .into_router()?;
    let app = Router::new()
        .route("/", get(async || "The agents are below /agents.\n"))
        .nest("/agents", agents)
        .layer(from_fn(sign_in));

    let port = std::env::args().nth(1).map_or(Ok(8080), |port| port.parse())?;
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    tracing::info!("listening on http://{}", listener.local_addr()?);
    let shutdown = async move {
        shutdown_signal().await;
        // The application continues to serve until all runs have ended.
        handle.shutdown().await;
    };
    axum::serve(listener, app).with_graceful_shutdown(shutdown).await?;
    Ok(())
}

/// Sets the principal of a request. A real application looks up a session; this one trusts the cookie.
async fn sign_in(mut request: Request, next: Next) -> Response {
    let cookies = request
        .headers()
        .get(header::COOKIE)
        .and_then(|cookies| cookies.to_str().ok())
        .unwrap_or_default();
    if let Some(user) = cookies.split("; ").find_map(|cookie| cookie.strip_prefix("user=")) {
        let principal = Principal::new("cookie", user);
        request.extensions_mut().insert(principal);
    }
    next.run(request).await
}

async fn greet(_: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    let name = out.context().principal().map_or("stranger", Principal::name);
    let mut message = out.text_message().await?;
    for word in ["Hello, ", name, "!"] {
        message.push(word).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    message.end().await
}
