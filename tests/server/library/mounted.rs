//! A server that is mounted in an axum application.

use std::time::Duration;

use agui_server::{auth::Authenticator, prelude::*};
use axum::{Router, extract::Request, middleware::Next, middleware::from_fn};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use super::support::{TEST_TIMEOUT, events, input};

async fn echo(input: RunAgentInput, out: Emitter) -> Result<(), AgentError> {
    out.text(input.last_user_text().unwrap_or_default()).await
}

/// Serves an application on a port of its own, and returns its URL.
async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

fn client() -> reqwest::Client {
    agui_base::upstream::direct_client(&Default::default()).unwrap()
}

/// Runs an agent as a user on a thread `t`, and reads the thread as ada, as bob and without a user.
async fn assert_threads_are_apart(server: Server, app: impl FnOnce(Router) -> Router) {
    let (router, _handle) = server.agent("echo", agent_fn(echo)).into_router().unwrap();
    let url = serve(app(router)).await;
    let request = |user: Option<&str>, request: reqwest::RequestBuilder| match user {
        Some(user) => request.header("x-user", user).send(),
        None => request.send(),
    };
    let run = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "ada's" }] });
    let post = || client().post(format!("{url}/agents/send-message")).json(&run);
    let read = || client().get(format!("{url}/agents/threads/t"));
    let sent = request(Some("ada"), post()).await.unwrap().text().await.unwrap();
    assert_eq!(events(&sent)[2]["delta"], "ada's");
    let ada: Value = request(Some("ada"), read()).await.unwrap().json().await.unwrap();
    assert_eq!(ada["messages"][0]["content"], "ada's");
    let bob = request(Some("bob"), read()).await.unwrap();
    assert_eq!(bob.status(), 404);
    assert!(!bob.text().await.unwrap().contains("ada"));
    let anonymous = request(None, read()).await.unwrap();
    assert_eq!(anonymous.status(), 401);
}

#[tokio::test]
async fn with_an_authenticator_of_ones_own_bob_cannot_read_adas_thread() {
    let authenticator = Authenticator::from_fn(|request: axum::http::request::Parts| async move {
        let user = request.headers.get("x-user").and_then(|user| user.to_str().ok());
        let user =
            user.ok_or(agui_server::auth::AuthError::refused("the header x-user is absent"))?;
        Ok(Principal::new("header", user))
    });
    assert_threads_are_apart(Server::new().authenticator(authenticator), |router| {
        Router::new().nest("/agents", router)
    })
    .await;
}

#[tokio::test]
async fn with_the_applications_principal_bob_cannot_read_adas_thread() {
    async fn sign_in(mut request: Request, next: Next) -> axum::response::Response {
        let user = request.headers().get("x-user").and_then(|user| user.to_str().ok());
        if let Some(principal) = user.map(|user| Principal::new("app", user)) {
            request.extensions_mut().insert(principal);
        }
        next.run(request).await
    }
    assert_threads_are_apart(
        Server::new().authenticator(Authenticator::from_extension()),
        |router| Router::new().nest("/agents", router).layer(from_fn(sign_in)),
    )
    .await;
}

#[tokio::test]
async fn an_application_with_an_open_run_ends_soon_after_it_is_told_to() {
    let endless = agent_fn(|_, out: Emitter| async move {
        let mut message = out.text_message().await?;
        loop {
            message.push("…").await?;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let server = Server::new().agent("endless", endless).drain(Duration::from_millis(100));
    let (router, handle) = server.into_router().unwrap();
    let live = handle.clone();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel::<()>();
    let shutdown = async move {
        let _ = stopped.await;
        handle.shutdown().await;
    };
    let served = tokio::spawn(async move {
        axum::serve(listener, router).with_graceful_shutdown(shutdown).await
    });

    let mut response =
        client().post(format!("{url}/send-message")).json(&input("Hello")).send().await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    assert_eq!(live.live_runs(), 1);
    let body = tokio::spawn(async move { response.text().await.unwrap() });
    stop.send(()).unwrap();
    let rest = tokio::time::timeout(TEST_TIMEOUT, body).await.unwrap().unwrap();
    assert!(rest.contains("server_shutdown"), "{rest}");
    tokio::time::timeout(TEST_TIMEOUT, served).await.unwrap().unwrap().unwrap();
    assert_eq!(live.live_runs(), 0);
}
