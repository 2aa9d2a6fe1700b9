//! An authorization server, an MCP server that names one, a web service that wants a token, and a browser.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use agui_base::upstream::direct_client;
use axum::{
    Json, Router,
    body::Bytes,
    extract::{Query, State},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderMap, StatusCode, header};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub(super) type Parameters = HashMap<String, String>;

/// Serves on a free port of this machine. Returns the origin.
pub(super) async fn serve(routes: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    origin
}

/// An authorization server that sends no `iss`. Everybody is logged in there, and agrees. Like real
/// servers, it refuses clients and redirect addresses that are not registered, codes of others, and
/// verifiers that do not fit.
#[derive(Clone, Default)]
pub(super) struct Authority(Arc<Mutex<Known>>);

#[derive(Default)]
pub(super) struct Known {
    pub(super) origin: String,
    /// The redirect address of each client.
    pub(super) clients: HashMap<String, String>,
    /// The requests to the authorization endpoint, by code.
    codes: HashMap<String, Parameters>,
    /// The requests to the token endpoint.
    pub(super) token_requests: Vec<Parameters>,
    /// Members of the metadata that are not its own.
    pub(super) metadata: Parameters,
    /// The client that is registered in place of a new one.
    pub(super) client: Option<String>,
    /// The authorization endpoint sends people on to this one, with these parameters in place of theirs.
    pub(super) page: Option<(String, Parameters)>,
}

impl Authority {
    pub(super) async fn start() -> Self {
        let authority = Self::default();
        let routes = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/auth", get(page))
            .route("/token", post(token));
        let origin = serve(routes.with_state(authority.clone())).await;
        authority.known().origin = origin;
        authority
    }

    pub(super) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap()
    }

    pub(super) fn origin(&self) -> String {
        self.known().origin.clone()
    }
}

async fn metadata(State(authority): State<Authority>) -> Json<Value> {
    let known = authority.known();
    let mut metadata = json!({ "issuer": known.origin });
    for (name, path) in [
        ("authorization_endpoint", "/auth"),
        ("token_endpoint", "/token"),
        ("registration_endpoint", "/register"),
    ] {
        metadata[name] =
            known.metadata.get(name).cloned().unwrap_or(format!("{}{path}", known.origin)).into();
    }
    Json(metadata)
}

async fn register(State(authority): State<Authority>, Json(wanted): Json<Value>) -> Json<Value> {
    let mut known = authority.known();
    let redirect_uri = wanted["redirect_uris"][0].as_str().unwrap().to_owned();
    let id = known.client.clone().unwrap_or(format!("client-{}", known.clients.len()));
    known.clients.insert(id.clone(), redirect_uri);
    Json(json!({ "client_id": id }))
}

async fn page(State(authority): State<Authority>, Query(mut asked): Query<Parameters>) -> Response {
    let mut known = authority.known();
    if let Some((endpoint, other)) = &known.page {
        asked.extend(other.clone());
        return redirect(endpoint, &asked);
    }
    let is_registered =
        known.clients.get(&asked["client_id"]).is_some_and(|uri| *uri == asked["redirect_uri"]);
    if !is_registered
        || asked["response_type"] != "code"
        || asked["code_challenge_method"] != "S256"
    {
        return (StatusCode::BAD_REQUEST, "the client or its redirect address is not registered")
            .into_response();
    }
    let code = format!("code-{}", known.codes.len());
    let answer = Parameters::from([
        ("code".to_owned(), code.clone()),
        ("state".to_owned(), asked["state"].clone()),
    ]);
    let response = redirect(&asked["redirect_uri"], &answer);
    known.codes.insert(code, asked);
    response
}

fn redirect(url: &str, parameters: &Parameters) -> Response {
    let mut url = Url::parse(url).unwrap();
    url.query_pairs_mut().extend_pairs(parameters);
    (StatusCode::FOUND, [(header::LOCATION, url.to_string())]).into_response()
}

async fn token(State(authority): State<Authority>, body: Bytes) -> Response {
    let body = String::from_utf8(body.to_vec()).unwrap();
    let asked: Parameters =
        Url::parse(&format!("http://form/?{body}")).unwrap().query_pairs().into_owned().collect();
    let mut known = authority.known();
    known.token_requests.push(asked.clone());
    let fits = known.codes.remove(&asked["code"]).is_some_and(|code| {
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&asked["code_verifier"]));
        code["code_challenge"] == challenge
            && ["client_id", "redirect_uri"].iter().all(|member| code[*member] == asked[*member])
    });
    if !fits {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" })))
            .into_response();
    }
    Json(json!({ "access_token": "token-of-the-person", "token_type": "Bearer" })).into_response()
}

/// Starts an MCP server that names an authorization server, and refuses everything else. Returns its URL.
pub(super) async fn start_mcp(authority: &Authority) -> String {
    let issuer = authority.origin();
    let about = move |headers: HeaderMap| async move {
        let host = headers[header::HOST].to_str().unwrap();
        Json(json!({ "resource": format!("http://{host}/mcp"), "authorization_servers": [issuer] }))
    };
    let routes = Router::new()
        .route("/.well-known/oauth-protected-resource/mcp", get(about))
        .route("/mcp", any(async || StatusCode::UNAUTHORIZED));
    format!("{}/mcp", serve(routes).await)
}

/// A browser with its cookies of a server.
#[derive(Clone)]
pub(super) struct Browser {
    client: Client,
    pub(super) cookie: Option<String>,
}

impl Browser {
    pub(super) fn new() -> Self {
        Self { client: direct_client(&Default::default()).unwrap(), cookie: None }
    }

    pub(super) fn request(&self, method: &str, url: &str) -> RequestBuilder {
        let request = self.client.request(method.parse().unwrap(), url);
        self.cookie.iter().fold(request, |request, cookie| request.header(header::COOKIE, cookie))
    }

    /// Opens a link. Returns the target of its page's button.
    pub(super) async fn open(&mut self, link: &str) -> String {
        let response = self.request("GET", link).send().await.unwrap();
        assert_eq!(response.status(), 200, "{link}");
        let cookie = response.headers()[header::SET_COOKIE].to_str().unwrap();
        self.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        let page = response.text().await.unwrap();
        let (_, action) =
            page.split_once("<form method=\"post\" action=\"").expect("the page has a button");
        let action = action.split('"').next().unwrap().replace("&amp;", "&");
        Url::parse(link).unwrap().join(&action).unwrap().into()
    }

    /// Presses a button. Returns the status and the address of the redirect.
    pub(super) async fn press(&self, button: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let request = self.request("POST", button);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        let location =
            response.headers().get(header::LOCATION).map(|url| url.to_str().unwrap().to_owned());
        (response.status().as_u16(), location.unwrap_or_default())
    }

    /// Follows redirects to the page at their end. Returns its status and its text.
    pub(super) async fn follow(&self, mut url: String) -> (u16, String) {
        loop {
            let response = self.request("GET", &url).send().await.unwrap();
            let Some(next) = response.headers().get(header::LOCATION) else {
                return (response.status().as_u16(), response.text().await.unwrap());
            };
            url = next.to_str().unwrap().to_owned();
        }
    }

    /// Logs in by a link. Returns the page at the end.
    pub(super) async fn log_in(&mut self, link: &str) -> (u16, String) {
        let button = self.open(link).await;
        let request = self.request("POST", &button).header("sec-fetch-site", "same-origin");
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        match response.headers().get(header::LOCATION) {
            Some(page) => self.follow(page.to_str().unwrap().to_owned()).await,
            None => (status, response.text().await.unwrap()),
        }
    }
}
