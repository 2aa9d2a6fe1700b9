//! The command with `credentials`, against fakes of a cloud's servers for tokens, for metadata and for models.
//! `tests/js/bedrock.test.mjs` has AWS.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use super::models::{ask, input, text_and_error};
use crate::support::{
    provider::{Answer, Provider},
    server::Process,
    strict, tokens,
};

const CLAUDE: &str = "provider = \"anthropic\"\nmodel = \"claude-sonnet-4-5@20250929\"";
const GEMINI: &str = "provider = \"gemini\"\nmodel = \"gemini-2.5-flash\"";

/// The servers of Google, and the command.
struct Google {
    models: Provider,
    /// The server for tokens, or for metadata.
    tokens: Provider,
    folder: tempfile::TempDir,
}

impl Google {
    async fn start() -> Self {
        let models = Provider::start_checked(strict::refusal).await;
        Self { models, tokens: Provider::start().await, folder: tempfile::tempdir().unwrap() }
    }

    /// Starts the command with a model. `folder` is the home of its user, and the file of credentials is named if there is one.
    fn command(&self, model: &str, endpoint: &str, file: Option<Value>) -> Process {
        let base = format!("{}/v1/projects/p/locations/l{endpoint}", self.models.url());
        let text = format!(
            "default_agent = \"a\"\n[agents.a]\nkind = \"llm\"\n{model}\nbase_url = \"{base}\"\ncredentials = \"gcp\"\n"
        );
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        std::fs::write(path("my.toml"), text).unwrap();
        let named =
            file.map(|file| std::fs::write(path("account.json"), file.to_string()).unwrap());
        let host = self.tokens.url().replace("http://", "");
        let mut variables =
            vec![("HOME", self.folder.path().display().to_string()), ("GCE_METADATA_HOST", host)];
        variables.push((
            "GOOGLE_APPLICATION_CREDENTIALS",
            named.map(|()| path("account.json")).unwrap_or_default(),
        ));
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Process::start(&["--config", &path("my.toml")], &variables)
    }

    fn gives(&self, token: &str, seconds: u64) {
        let answer = json!({"access_token": token, "expires_in": seconds, "token_type": "Bearer"});
        self.tokens.answer(Answer::new(200, [answer.to_string()]));
    }

    /// Returns the tokens with which the models were asked.
    fn keys(&self) -> Vec<String> {
        let key = |request: &crate::support::provider::Recorded| {
            request.headers["authorization"]
                .to_str()
                .unwrap()
                .strip_prefix("Bearer ")
                .unwrap()
                .to_owned()
        };
        self.models.requests().iter().map(key).collect()
    }

    fn token_url(&self) -> String {
        format!("{}/token", self.tokens.url())
    }
}

fn claude_says(text: &str) -> Answer {
    Answer::anthropic(&super::providers::events(text))
}

fn gemini_says(text: &str) -> Answer {
    let part = json!({"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP", "index": 0});
    Answer::gemini(&[json!({"candidates": [part]})])
}

fn form(text: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://h/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

/// Returns the claims of a token that the key of the service account has signed.
fn claims(token: &str) -> Value {
    let (message, signature) = token.rsplit_once('.').unwrap();
    let pair = RsaKeyPair::from_pkcs8(&tokens::der(&tokens::fixture("rsa"))).unwrap();
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key());
    key.verify(message.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .expect("a signature of the account");
    let part = |part: &str| {
        serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let (header, claims) = message.split_once('.').unwrap();
    assert_eq!(part(header), json!({"alg": "RS256", "typ": "JWT", "kid": "key-1"}));
    part(claims)
}

#[tokio::test]
async fn a_service_accounts_token_is_used_until_it_is_refused() {
    let google = Google::start().await;
    let account = json!({
        "type": "service_account", "client_email": "a@p.test", "private_key_id": "key-1",
        "private_key": tokens::fixture("rsa"), "token_uri": google.token_url(),
    });
    let command = google.command(CLAUDE, "", Some(account));
    google.gives("words-of-a-token-1", 3600);
    google.gives("words-of-a-token-2", 3600);
    google.models.answer(claude_says("one"));
    google
        .models
        .answer(Answer::new(401, [r#"{"error":{"message":"expired: words-of-a-token-1"}}"#]));
    google.models.answer(claude_says("two"));
    for text in ["one", "two"] {
        assert_eq!(text_and_error(&ask(&command.url, input("hi")).await), (text.to_owned(), None));
    }
    assert_eq!(google.keys(), ["words-of-a-token-1", "words-of-a-token-1", "words-of-a-token-2"]);
    let sent = &google.models.requests()[0];
    let path = "/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict";
    assert_eq!((sent.path.as_str(), &sent.body["stream"]), (path, &json!(true)));
    assert!(!sent.headers.contains_key("x-api-key"));
    let asked = google.tokens.requests();
    assert_eq!(asked.len(), 2);
    let asked = form(&asked[0].text);
    assert_eq!(
        asked[0],
        ("grant_type".to_owned(), "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned())
    );
    let claims = claims(&asked[1].1);
    let lifetime = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert_eq!(
        (&claims["iss"], &claims["aud"], lifetime),
        (&json!("a@p.test"), &json!(google.token_url()), 3600)
    );
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
    command.signal("-TERM");
    let log = command.ended().1;
    assert!(!log.contains("words-of-a-token") && !log.contains("PRIVATE"), "{log}");
}

#[tokio::test]
async fn the_file_of_gcloud_gives_a_users_token() {
    let google = Google::start().await;
    let folder = google.folder.path().join(".config/gcloud");
    std::fs::create_dir_all(&folder).unwrap();
    let user = json!({
        "type": "authorized_user", "client_id": "client", "client_secret": "s+&", "refresh_token": "1//words",
        "token_uri": google.token_url(),
    });
    std::fs::write(folder.join("application_default_credentials.json"), user.to_string()).unwrap();
    let command = google.command(&format!("{GEMINI}\ntools = [\"current_time\"]"), "", None);
    google.gives("token", 3600);
    let call =
        json!({"role": "model", "parts": [{"functionCall": {"name": "current_time", "args": {}}}]});
    google.models.answer(Answer::gemini(&[
        json!({"candidates": [{"content": call, "finishReason": "STOP"}]}),
    ]));
    google.models.answer(gemini_says("hello"));
    assert_eq!(text_and_error(&ask(&command.url, input("hi")).await), ("hello".to_owned(), None));
    let path = "/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
    assert_eq!(
        (google.models.requests()[1].path.as_str(), google.keys()),
        (path, vec!["token".to_owned(); 2])
    );
    assert!(google.models.requests()[1].text.contains("functionResponse"));
    let expected = [
        ("grant_type", "refresh_token"),
        ("client_id", "client"),
        ("client_secret", "s+&"),
        ("refresh_token", "1//words"),
    ];
    let sent = form(&google.tokens.requests()[0].text);
    assert_eq!(sent, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn the_server_for_metadata_gives_a_token_that_is_renewed_before_it_expires() {
    let google = Google::start().await;
    let command = google.command(
        "provider = \"openai\"\nmodel = \"google/gemini-2.5-flash\"",
        "/endpoints/openapi",
        None,
    );
    for token in ["token-1", "token-2"] {
        google.gives(token, 200);
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]});
        google.models.answer(Answer::openai(&[chunk]));
        assert_eq!(
            text_and_error(&ask(&command.url, input("hi")).await),
            ("hello".to_owned(), None)
        );
    }
    assert_eq!(google.keys(), ["token-1", "token-2"]);
    let asked = &google.tokens.requests()[0];
    assert_eq!(asked.path, "/computeMetadata/v1/instance/service-accounts/default/token");
    assert_eq!(asked.headers["metadata-flavor"], "Google");
    // The server for tokens no longer answers: the last token stays in use.
    google.models.answer(Answer::openai(&[
        json!({"choices": [{"index": 0, "delta": {"content": "still"}}]}),
    ]));
    assert_eq!(text_and_error(&ask(&command.url, input("hi")).await).0, "still");
    assert!(command.has_logged("the last one stays in use"));
}

#[tokio::test]
async fn credentials_that_are_refused_or_unknown_are_named_without_what_they_contain() {
    let google = Google::start().await;
    let user = |kind: &str| {
        let url = google.token_url();
        json!({"type": kind, "client_id": "c", "client_secret": "s", "refresh_token": "1//words", "token_uri": url})
    };
    for (file, logged) in [
        (user("authorized_user"), "the server for tokens answered 400 Bad Request (invalid_grant)"),
        (
            user("external_account"),
            "neither a service account's nor a user's: let a command print the key, gcloud auth",
        ),
        (json!("1//words"), "account.json is not a file of Google's credentials"),
        (
            json!({"type": "service_account", "client_email": "a", "private_key": "1//words"}),
            "is not an RSA key in PKCS #8",
        ),
    ] {
        let refusal = json!({"error": "invalid_grant", "error_description": "1//words is revoked"});
        google.tokens.answer(Answer::new(400, [refusal.to_string()]));
        let command = google.command(CLAUDE, "", Some(file));
        let error = text_and_error(&ask(&command.url, input("hi")).await).1;
        assert_eq!(error.as_deref(), Some("model_unauthorized"), "{logged}");
        command.signal("-TERM");
        let log = command.ended().1;
        assert!(log.contains(logged) && !log.contains("1//words"), "{logged}: {log}");
    }
    assert!(google.models.requests().is_empty());
}
