//! Tokens that are checked with a fixed key.

use agui_server::{
    Server,
    agent::{RunContext, emit::TextMessage, events},
    auth::{Jwt, JwtOptions},
    protocol::RunAgentInput,
};
use reqwest::header;
use serde_json::{Value, json};

use crate::support::{
    running::{Running, input},
    server::Process,
    tokens::{self, by_secret, claims, es256, fixture, from_now, hs256, rs256, sign, with},
};

pub(crate) fn options() -> JwtOptions {
    let mut options = JwtOptions::new(["agui"]);
    options.issuer = Some("https://id.test".to_owned());
    options
}

/// A server whose agent answers with the principal's name.
pub(crate) fn who(jwt: Jwt) -> Server {
    let who = |_: RunAgentInput, cx: RunContext| {
        events(TextMessage::whole(cx.principal().map_or("nobody", |principal| principal.name())))
    };
    Server::new().agent("who", who).jwt(jwt)
}

fn by_hs256() -> Jwt {
    Jwt::from_secret(tokens::SECRET.as_bytes(), options()).unwrap()
}

/// Returns the principal of a token, or the refusal: the status, the error's code, and the challenge.
pub(crate) async fn ask(server: &Running, token: &str) -> Result<String, (u16, String, String)> {
    let response =
        server.post("/send-message").bearer_auth(token).json(&input("hi")).send().await.unwrap();
    let status = response.status().as_u16();
    let challenge = response.headers().get(header::WWW_AUTHENTICATE).cloned();
    let body = response.text().await.unwrap();
    if status == 200 {
        let delta = body.split("\"delta\":\"").nth(1).unwrap_or_else(|| panic!("{body}"));
        return Ok(delta.split('"').next().unwrap().to_owned());
    }
    let body: Value = serde_json::from_str(&body).unwrap();
    let challenge =
        challenge.map(|challenge| challenge.to_str().unwrap().to_owned()).unwrap_or_default();
    Err((status, body["error"]["code"].as_str().unwrap().to_owned(), challenge))
}

/// Asserts that a token is refused, for this reason.
pub(crate) async fn assert_refused(server: &Running, token: &str, reason: &str) {
    let challenge = format!(
        "Bearer realm=\"agui-server\", error=\"invalid_token\", error_description=\"{reason}\""
    );
    assert_eq!(
        ask(server, token).await,
        Err((401, "invalid_token".to_owned(), challenge)),
        "{token}"
    );
}

#[tokio::test]
async fn a_valid_token_authenticates_its_subject() {
    let public = |name| Jwt::from_public_key(&fixture(name), &[], options()).unwrap();
    for (jwt, token) in [
        (by_hs256(), hs256(&claims("ada"))),
        (public("rsa.pub"), rs256("rsa", "a", &claims("ada"))),
        (public("ec.pub"), es256("ec", "a", &claims("ada"))),
    ] {
        let server = Running::start(who(jwt)).await;
        assert_eq!(ask(&server, &token).await, Ok("ada".to_owned()));
        // With authentication, any host name is accepted.
        let request = server.client.get(server.url("/agents")).bearer_auth(&token);
        assert_eq!(
            request.header(header::HOST, "agents.example.com").send().await.unwrap().status(),
            200
        );
        // The same claims under another key or another algorithm.
        assert!(ask(&server, &rs256("rsa2", "a", &claims("ada"))).await.is_err());
        for secret in [fixture("rsa.pub"), fixture("ec.pub")] {
            let forged = sign(&json!({ "alg": "HS256" }), &claims("ada"), |message| {
                by_secret(secret.as_bytes(), message)
            });
            assert_eq!(ask(&server, &forged).await.unwrap_err().0, 401);
        }
    }
}

#[tokio::test]
async fn a_refused_token_gets_the_reason_and_no_part_of_the_token_back() {
    let server = Running::start(who(by_hs256())).await;
    let ada = || claims("ada-the-secret");
    for (token, reason) in [
        (hs256(&with(ada(), "exp", from_now(-60))), "the token has expired"),
        (hs256(&with(ada(), "exp", Value::Null)), "the token's exp claim is missing or malformed"),
        (hs256(&with(ada(), "nbf", from_now(120))), "the token is not valid yet"),
        (hs256(&with(ada(), "aud", "another")), "the token is for another audience"),
        (hs256(&with(ada(), "aud", Value::Null)), "the token's aud claim is missing or malformed"),
        (hs256(&with(ada(), "iss", "https://evil.test")), "the token is from another issuer"),
        (
            hs256(&with(ada(), "sub", "")),
            "the token's subject is missing, or not 1 to 256 bytes of plain text",
        ),
        (
            sign(&json!({ "alg": "none" }), &ada(), |_| vec![]),
            "the token is signed with an algorithm that is not accepted",
        ),
        (
            sign(&json!({ "alg": "HS256" }), &ada(), |message| {
                by_secret(b"another secret", message)
            }),
            "the token's signature is not valid",
        ),
        (rs256("rsa", "a", &ada()), "the token is signed with an algorithm that is not accepted"),
        ("x".repeat(17_000), "the token is too long"),
    ] {
        assert_refused(&server, &token, reason).await;
        let response = server
            .post("/send-message")
            .bearer_auth(&token)
            .json(&input("hi"))
            .send()
            .await
            .unwrap();
        let body: Value = response.json().await.unwrap();
        assert_eq!(body, json!({ "error": { "code": "invalid_token", "message": reason } }));
    }
    for authorization in [None, Some("Basic YTpi"), Some("Bearer ")] {
        let mut request = server.post("/send-message").json(&input("hi"));
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer realm=\"agui-server\"");
        assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], "unauthenticated");
    }
}

#[tokio::test]
async fn a_thread_belongs_to_its_subject_only() {
    let server = Running::start(who(by_hs256())).await;
    let input = input("hi");
    let thread = input["threadId"].as_str().unwrap();
    let (ada, bob) = (hs256(&claims("ada")), hs256(&claims("bob")));
    // The same subject with another token, as after signing in again.
    let again = hs256(&with(claims("ada"), "exp", from_now(900)));
    let run = |token: &str| server.post("/send-message").bearer_auth(token).json(&input).send();
    let body = run(&ada).await.unwrap().text().await.unwrap();
    assert!(body.contains("RUN_FINISHED"), "{body}");
    let path = format!("/threads/{thread}");
    for (token, status) in [(&ada, 200), (&again, 200), (&bob, 404)] {
        let read = server.client.get(server.url(&path)).bearer_auth(token).send().await.unwrap();
        assert_eq!(read.status(), status);
        let connect = server
            .post(&format!("{path}/connect"))
            .bearer_auth(token)
            .json(&json!({}))
            .send()
            .await
            .unwrap();
        assert_eq!(connect.text().await.unwrap().contains("\"messages\":[]"), status == 404);
        let list =
            server.client.get(server.url("/threads")).bearer_auth(token).send().await.unwrap();
        assert_eq!(list.text().await.unwrap().contains(thread), status == 200);
    }
    assert_eq!(
        server.client.delete(server.url(&path)).bearer_auth(&bob).send().await.unwrap().status(),
        404
    );
    // The same id is another thread of bob's.
    assert_eq!(run(&bob).await.unwrap().status(), 200);
    assert_eq!(
        server.client.delete(server.url(&path)).bearer_auth(&bob).send().await.unwrap().status(),
        204
    );
    assert_eq!(
        server.client.get(server.url(&path)).bearer_auth(&ada).send().await.unwrap().status(),
        200
    );
}

#[tokio::test]
async fn the_example_configuration_accepts_tokens_of_a_provider() {
    let provider = crate::auth::jwks::Provider::start(vec![tokens::jwk("rsa", "a")]).await;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/config/jwt.toml");
    // The server starts without keys: they are fetched when the first token comes.
    drop(Process::start(&["--config", file], &[]));
    let environment = [
        ("AGUI_AUTH__JWT__JWKS_URL", provider.url.as_str()),
        ("AGUI_AUTH__JWT__ISSUER", "https://id.test"),
        ("AGUI_AUTH__JWT__AUDIENCE", "agui"),
    ];
    let process = Process::start(&["--config", file], &environment);
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let run = |token: String| {
        client
            .post(format!("{}/send-message", process.url))
            .bearer_auth(token)
            .json(&input("Hello"))
            .send()
    };
    let body = run(rs256("rsa", "a", &claims("ada"))).await.unwrap().text().await.unwrap();
    assert!(body.contains("How can I help you?"), "{body}");
    // With authentication, any host name is accepted.
    let by_name =
        client.get(format!("{}/healthz", process.url)).header(header::HOST, "agents.example.com");
    assert_eq!(by_name.send().await.unwrap().status(), 200);
    let expired = rs256("rsa", "a", &with(claims("ada"), "exp", from_now(-60)));
    assert_eq!(run(expired).await.unwrap().status(), 401);
    // The limits of the example: ada has had one of her 30 runs.
    for _ in 0..29 {
        let again = run(rs256("rsa", "a", &claims("ada"))).await.unwrap();
        assert!(again.text().await.unwrap().contains("How can I help you?"));
    }
    let refused = run(rs256("rsa", "a", &claims("ada"))).await.unwrap();
    assert_eq!((refused.status().as_u16(), provider.asked()), (429, 1));
    process.signal("-TERM");
    let (code, log) = process.ended();
    assert_eq!(code, Some(0));
    assert!(!log.contains("eyJ"), "a token is in the log: {log}");
}
