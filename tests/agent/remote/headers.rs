//! Headers of requests to the endpoint: configured headers, and named headers of the client.

use agui_server::{Server, agent::builtin::Remote, options::HttpOptions};
use serde_json::json;

use super::{
    endpoint::{FakeEndpoint, Response, finished, started},
    running::{Running, events, input},
    server::Process,
};

#[tokio::test]
async fn only_named_headers_of_the_client_are_passed_on() {
    let endpoint = FakeEndpoint::new([Response::events(&[started(), finished()])]).await;
    let mut options = endpoint.options();
    options.headers = vec![("X-Own".to_owned(), "own".into())];
    options.pass_headers =
        vec!["X-Tenant".to_owned(), "x-many".to_owned(), "x-not-let-through".to_owned()];
    let http = HttpOptions {
        pass_headers: vec![
            "x-tenant".to_owned(),
            "X-Many".to_owned(),
            "x-of-another-agent".to_owned(),
        ],
        ..HttpOptions::default()
    };
    let remote = Remote::new(options).unwrap();
    let server = Running::start(Server::new().agent("remote", remote).http_options(http)).await;
    for props in [json!({}), json!({ "onDisconnect": "continue" })] {
        let mut asked = input("Hello");
        asked["forwardedProps"] = props;
        let request = server.post("/send-message").json(&asked).header("X-Tenant", "acme é");
        let request =
            request.header("X-Many", "1").header("X-Many", "2").header("x-of-another-agent", "no");
        let request = request
            .header("x-not-let-through", "no")
            .header("authorization", "Bearer no")
            .header("cookie", "no");
        let body = request.header("x-own", "not yours").send().await.unwrap().text().await.unwrap();
        assert!(body.contains("\"success\""), "{body}");
    }
    let requests = endpoint.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let values = |name: &str| {
            let all = request.headers.get_all(name).iter();
            all.map(|value| std::str::from_utf8(value.as_bytes()).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(values("x-tenant"), ["acme é"]);
        assert_eq!(values("x-many"), ["1", "2"]);
        assert_eq!(values("x-own"), ["own"]);
        for name in ["x-of-another-agent", "x-not-let-through", "authorization", "cookie"] {
            assert!(values(name).is_empty(), "{name}");
        }
    }
}

#[tokio::test]
async fn the_configuration_sets_endpoint_headers_and_description() {
    let endpoint = FakeEndpoint::new([Response::events(&[started(), finished()])]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("remote.toml");
    let config = format!(
        "default_agent = \"a\"\n[agents.a]\nkind = \"remote\"\nurl = \"{0}\"\ndescription = \"Elsewhere\"\n\
         headers_env = {{ Authorization = \"UPSTREAM_TOKEN\" }}\npass_headers = [\"X-Tenant\"]\nidle_timeout_secs = 5\n\
         connect_timeout_secs = 5\n[agents.b]\nkind = \"remote\"\nurl = \"{0}\"\npass_headers = [\"cookie\"]\n",
        endpoint.url
    );
    std::fs::write(&file, config).unwrap();
    let environment = [("UPSTREAM_TOKEN", "Bearer s3cret"), ("AGUI_LOG__LEVEL", "debug")];
    let process = Process::start(&["--config", file.to_str().unwrap()], &environment);
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    for agent in ["a", "b"] {
        let url = format!("{}/agents/{agent}/send-message", process.url);
        let request = client
            .post(url)
            .json(&input("Hello"))
            .header("x-tenant", "acme")
            .header("cookie", "c=s3cret");
        let body = request.send().await.unwrap().text().await.unwrap();
        assert_eq!(events(&body).len(), 2, "{body}");
    }
    let url = format!("{}/agents/a/capabilities", process.url);
    let capabilities: serde_json::Value =
        client.get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(capabilities["identity"], json!({ "description": "Elsewhere" }));
    assert!(capabilities["tools"].is_null(), "{capabilities}");
    let [a, b] = &endpoint.requests()[..] else { panic!("expected two requests") };
    assert_eq!(
        (&a.headers["authorization"], &a.headers["x-tenant"]),
        (&"Bearer s3cret".parse().unwrap(), &"acme".parse().unwrap())
    );
    assert!(!a.headers.contains_key("cookie") && !b.headers.contains_key("x-tenant"));
    assert_eq!(b.headers["cookie"], "c=s3cret");
    process.signal("-TERM");
    let (_, log) = process.ended();
    assert!(!log.contains("s3cret"), "{log}");
}

#[test]
fn the_server_does_not_start_without_the_variable_of_a_header() {
    let arguments = ["check", "--config", "config/remote.toml"];
    let check = |variables: &[(&str, &str)]| {
        let mut command = std::process::Command::new(super::server::BINARY);
        let output = command
            .args(arguments)
            .env_remove("UPSTREAM_TOKEN")
            .envs(variables.iter().copied())
            .output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = check(&[]);
    assert_eq!(code, Some(2));
    assert!(
        error.contains(
            "agents.assistant.headers_env: the environment variable UPSTREAM_TOKEN is not set"
        ),
        "{error}"
    );
    assert_eq!(check(&[("UPSTREAM_TOKEN", "Bearer x")]).0, Some(0));
}
