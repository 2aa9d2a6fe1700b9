//! Tokens with keys that a provider publishes and rotates.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use agui_server::auth::{JwksOptions, Jwt, JwtAlgorithm};
use axum::{Json, Router, http::StatusCode, response::IntoResponse as _, routing::get};
use futures::future::join_all;
use reqwest::header;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    auth::jwt::{ask, assert_refused, options, who},
    support::{
        running::{Running, eventually_async, input},
        tokens::{
            P384, by_rsa, by_rsa_as, by_secret, claims, ed25519, ed25519_jwk, es256, fixture, jwk,
            rs256, sign, with,
        },
    },
};

const UNKNOWN: &str = "the token is signed with a key that the server does not know";

/// A server that publishes keys.
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
    answer: Arc<Mutex<Answer>>,
}

#[derive(Clone)]
struct Answer {
    status: u16,
    body: Value,
    after: Duration,
}

impl Provider {
    pub(crate) async fn start(keys: Vec<Value>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let answer = Answer { status: 200, body: json!({ "keys": keys }), after: Duration::ZERO };
        let answer = Arc::new(Mutex::new(answer));
        let (count, current) = (asked.clone(), answer.clone());
        let keys = move || async move {
            count.fetch_add(1, Ordering::SeqCst);
            let answer: Answer = current.lock().unwrap().clone();
            sleep(answer.after).await;
            (StatusCode::from_u16(answer.status).unwrap(), Json(answer.body)).into_response()
        };
        tokio::spawn(async move {
            axum::serve(listener, Router::new().route("/keys", get(keys))).await
        });
        Self { url, asked, answer }
    }

    /// The number of fetches.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn publish(&self, keys: Vec<Value>) {
        self.answer.lock().unwrap().body = json!({ "keys": keys });
    }

    fn fail(&self, status: u16) {
        self.answer.lock().unwrap().status = status;
    }

    fn respond_after(&self, time: Duration) {
        self.answer.lock().unwrap().after = time;
    }

    async fn server(&self, fetching: JwksOptions) -> Running {
        Running::start(who(Jwt::from_jwks(&self.url, &[], fetching, options()).unwrap())).await
    }
}

fn fetching(change: impl FnOnce(&mut JwksOptions)) -> JwksOptions {
    let mut options = JwksOptions::default();
    change(&mut options);
    options
}

/// Keys are fetched without pauses.
fn at_once() -> JwksOptions {
    fetching(|options| {
        (options.retry, options.retry_without_keys) = (Duration::ZERO, Duration::ZERO)
    })
}

fn ada(key: &str, kid: &str) -> String {
    rs256(key, kid, &claims("ada"))
}

#[tokio::test]
async fn keys_are_fetched_once_and_cached() {
    let provider = Provider::start(vec![
        jwk("rsa", "a"),
        jwk("ec", "b"),
        json!({ "kty": "oct", "k": "AAAA" }),
    ])
    .await;
    let server = provider.server(JwksOptions::default()).await;
    assert_eq!(provider.asked(), 0);
    for _ in 0..3 {
        assert_eq!(ask(&server, &ada("rsa", "a")).await, Ok("ada".to_owned()));
        assert_eq!(ask(&server, &es256("ec", "b", &claims("eve"))).await, Ok("eve".to_owned()));
    }
    assert_eq!(provider.asked(), 1);
    // The right name with the wrong key, and the name of a key for another algorithm.
    assert_refused(&server, &ada("rsa2", "a"), "the token's signature is not valid").await;
    let other = "the token is signed with an algorithm that is not accepted";
    assert_refused(&server, &ada("rsa", "b"), other).await;
    for secret in [fixture("rsa.pub"), jwk("rsa", "a")["n"].as_str().unwrap().to_owned()] {
        let header = json!({ "alg": "HS256", "kid": "a" });
        let forged = sign(&header, &claims("ada"), |message| by_secret(secret.as_bytes(), message));
        assert_refused(&server, &forged, other).await;
    }
    // A token without a key's name is accepted if there is one key for the algorithm.
    let nameless = sign(&json!({ "alg": "RS256" }), &claims("ada"), |message| {
        by_rsa(&fixture("rsa"), message)
    });
    assert_eq!(ask(&server, &nameless).await, Ok("ada".to_owned()));
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn only_the_configured_algorithms_are_accepted() {
    let provider = Provider::start(vec![jwk("rsa", "a"), jwk("ec", "b")]).await;
    let jwt = Jwt::from_jwks(&provider.url, &[JwtAlgorithm::Es256], at_once(), options()).unwrap();
    let server = Running::start(who(jwt)).await;
    assert_eq!(ask(&server, &es256("ec", "b", &claims("eve"))).await, Ok("eve".to_owned()));
    assert_refused(&server, &ada("rsa", "a"), UNKNOWN).await;
}

#[tokio::test]
async fn every_algorithm_of_public_keys_is_accepted_from_one_set() {
    let (p384, edwards) = (P384::new(), ed25519());
    let pss = with(jwk("rsa", "pss"), "alg", "PS256");
    let set = [
        with(p384.jwk(), "kid", "p384"),
        with(ed25519_jwk(&edwards), "kid", "edwards"),
        pss,
        jwk("rsa2", "rsa"),
    ];
    let server = Provider::start(set.to_vec()).await.server(JwksOptions::default()).await;
    let signed = |algorithm: &str, kid: &str, by: &dyn Fn(&[u8]) -> Vec<u8>| {
        sign(&json!({ "alg": algorithm, "kid": kid }), &claims("ada"), by)
    };
    let by_pss =
        |message: &[u8]| by_rsa_as(&ring::signature::RSA_PSS_SHA256, &fixture("rsa"), message);
    let by_edwards = |message: &[u8]| edwards.sign(message).as_ref().to_vec();
    for token in [
        signed("ES384", "p384", &|message| p384.sign(message)),
        signed("EdDSA", "edwards", &by_edwards),
        signed("Ed25519", "edwards", &by_edwards),
        signed("PS256", "pss", &by_pss),
        rs256("rsa2", "rsa", &claims("ada")),
    ] {
        assert_eq!(ask(&server, &token).await, Ok("ada".to_owned()), "{token}");
    }
    // A right signature, with an algorithm that is not the key's.
    let by_other = signed("RS256", "pss", &|message| by_rsa(&fixture("rsa"), message));
    assert_refused(
        &server,
        &by_other,
        "the token is signed with an algorithm that is not accepted",
    )
    .await;
}

#[tokio::test]
async fn a_rotated_key_replaces_the_old_one() {
    let provider = Provider::start(vec![jwk("rsa", "a")]).await;
    let server = provider.server(at_once()).await;
    assert_eq!(ask(&server, &ada("rsa", "a")).await, Ok("ada".to_owned()));
    provider.publish(vec![jwk("rsa2", "b")]);
    assert_eq!(ask(&server, &ada("rsa2", "b")).await, Ok("ada".to_owned()));
    assert_eq!(provider.asked(), 2);
    assert_refused(&server, &ada("rsa", "a"), UNKNOWN).await;
}

#[tokio::test]
async fn old_keys_stay_in_use_while_new_ones_are_fetched() {
    let provider = Provider::start(vec![jwk("rsa", "a")]).await;
    let refresh = Duration::from_millis(200);
    let server = provider
        .server(fetching(|options| (options.refresh, options.retry) = (refresh, Duration::ZERO)))
        .await;
    assert_eq!(ask(&server, &ada("rsa", "a")).await, Ok("ada".to_owned()));
    provider.publish(vec![jwk("rsa2", "b")]);
    let fetch = Duration::from_secs(1);
    provider.respond_after(fetch);
    eventually_async("the keys are fetched again", async || {
        let asked_at = std::time::Instant::now();
        assert_eq!(ask(&server, &ada("rsa", "a")).await, Ok("ada".to_owned()));
        assert!(asked_at.elapsed() < fetch, "the request waited for the fetch");
        provider.asked() == 2
    })
    .await;
    eventually_async("the old key is forgotten", async || {
        ask(&server, &ada("rsa", "a")).await.is_err()
    })
    .await;
    assert_refused(&server, &ada("rsa", "a"), UNKNOWN).await;
}

#[tokio::test]
async fn known_keys_stay_in_use_when_fetching_fails() {
    let provider = Provider::start(vec![jwk("rsa", "a")]).await;
    let server = provider
        .server(fetching(|options| {
            (options.timeout, options.retry) = (Duration::from_secs(2), Duration::ZERO)
        }))
        .await;
    assert_eq!(ask(&server, &ada("rsa", "a")).await, Ok("ada".to_owned()));
    let padding = "x".repeat(1024 * 1024);
    let outages: [(u16, Vec<Value>, u64); 5] = [
        (500, vec![jwk("rsa2", "b")], 0),
        (302, vec![jwk("rsa2", "b")], 0),
        (200, vec![json!({ "kty": "oct", "k": "AAAA" })], 0),
        (200, vec![jwk("rsa2", "b"), padding.into()], 0),
        (200, vec![jwk("rsa2", "b")], 10_000),
    ];
    for (status, keys, after) in outages {
        provider.fail(status);
        provider.publish(keys);
        provider.respond_after(Duration::from_millis(after));
        let before = provider.asked();
        assert_refused(&server, &ada("rsa2", "b"), UNKNOWN).await;
        assert_eq!(provider.asked(), before + 1, "{status} {after}");
        assert_eq!(ask(&server, &ada("rsa", "a")).await, Ok("ada".to_owned()), "{status} {after}");
    }
}

#[tokio::test]
async fn without_any_key_tokens_are_answered_with_503_and_not_refused() {
    let provider = Provider::start(vec![jwk("rsa", "a")]).await;
    provider.fail(503);
    let pause = Duration::from_secs(3);
    let server = provider.server(fetching(|options| options.retry_without_keys = pause)).await;
    for _ in 0..3 {
        let request = server.post("/send-message").bearer_auth(ada("rsa", "a")).json(&input("hi"));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 503);
        let wait: u64 = response.headers()[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
        assert!((1..=3).contains(&wait), "{wait}");
        assert!(!response.headers().contains_key(header::WWW_AUTHENTICATE));
        assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], "keys_unavailable");
    }
    assert_eq!(provider.asked(), 1);
    provider.fail(200);
    eventually_async("the keys are fetched again", async || {
        ask(&server, &ada("rsa", "a")).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn many_tokens_with_unknown_keys_cause_one_fetch() {
    let provider = Provider::start(vec![jwk("rsa", "a")]).await;
    let retry = Duration::from_secs(10);
    let server = provider.server(fetching(|options| options.retry = retry)).await;
    let flood = || {
        join_all((0..60).map(|number| {
            let (server, token) = (&server, ada("rsa", &format!("made up {number}")));
            async move { assert_refused(server, &token, UNKNOWN).await }
        }))
    };
    // Requests that come during the first fetch wait for it.
    provider.respond_after(Duration::from_millis(300));
    let crowd = join_all((0..60).map(|_| async { ask(&server, &ada("rsa", "a")).await })).await;
    assert!(crowd.into_iter().all(|answer| answer == Ok("ada".to_owned())));
    assert_eq!(provider.asked(), 1);
    flood().await;
    assert_eq!(provider.asked(), 1, "too soon for another fetch");
    eventually_async("the pause after the fetch ends", async || {
        flood().await;
        provider.asked() > 1
    })
    .await;
    assert_eq!(provider.asked(), 2);
}

#[tokio::test]
async fn a_client_that_disconnects_during_a_fetch_does_not_cause_another_one() {
    let provider = Provider::start(vec![jwk("rsa", "a")]).await;
    provider.respond_after(Duration::from_secs(2));
    let server = provider.server(at_once()).await;
    for _ in 0..5 {
        let request = server.post("/send-message").bearer_auth(ada("rsa", "a")).json(&input("hi"));
        assert!(
            request.timeout(Duration::from_millis(40)).send().await.is_err(),
            "it has not disconnected"
        );
    }
    assert_eq!(ask(&server, &ada("rsa", "a")).await, Ok("ada".to_owned()));
    assert_eq!(provider.asked(), 1);
}
