//! The addresses at which metrics are served, and the clients that get them.

use agui_server::{Server, agent::builtin::Echo, auth::ApiKey, options::MetricsOptions};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use serde_json::Value;

use super::{
    server::Process,
    support::{Running, input},
    value,
};

fn echo() -> Server {
    Server::new().agent("echo", Echo)
}

async fn status(server: &Running, key: Option<&str>) -> u16 {
    let mut request = server.client.get(server.url("/metrics"));
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn the_main_listener_serves_metrics_only_if_configured() {
    assert_eq!(status(&Running::start(echo()).await, None).await, 404);
    let server = Running::start(echo().metrics(MetricsOptions::on_main_listener())).await;
    server.run(&input("Hi")).await.text().await.unwrap();
    let get = || server.client.get(server.url("/metrics"));
    let response = get().send().await.unwrap();
    assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; version=0.0.4; charset=utf-8");
    let text = response.text().await.unwrap();
    assert_eq!(
        value(&text, "agui_runs_total{agent=\"echo\",outcome=\"success\",code=\"\"}"),
        1.0,
        "{text}"
    );
    let open =
        get().header(ACCEPT, "application/openmetrics-text;version=1.0.0").send().await.unwrap();
    assert!(open.text().await.unwrap().ends_with("# EOF\n"));
    let index = server.client.get(server.url("/")).send().await.unwrap().text().await.unwrap();
    assert!(index.contains("/metrics"), "{index}");
}

#[tokio::test]
async fn without_authentication_clients_of_a_proxy_on_the_same_machine_get_no_metrics() {
    let server = Running::start(echo().metrics(MetricsOptions::on_main_listener())).await;
    for name in ["Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"] {
        let proxied = server
            .client
            .get(server.url("/metrics"))
            .header(name, "127.0.0.1")
            .send()
            .await
            .unwrap();
        assert_eq!(proxied.status(), 403, "{name}");
    }
}

#[tokio::test]
async fn with_authentication_metrics_need_a_key() {
    let server = echo().api_keys([ApiKey::from_secret("web", "open sesame")]);
    let server = Running::start(server.metrics(MetricsOptions::on_main_listener())).await;
    assert_eq!(status(&server, None).await, 401);
    assert_eq!(status(&server, Some("wrong")).await, 401);
    assert_eq!(status(&server, Some("open sesame")).await, 200);
}

#[tokio::test]
async fn a_page_that_rebinds_its_name_gets_no_metrics() {
    let keys = [
        ("AGUI_AUTH__MODE", "api_key"),
        ("AGUI_AUTH__API_KEYS", "[{ name = \"web\", env = \"AGUI_KEY_WEB\" }]"),
        ("AGUI_KEY_WEB", "open sesame"),
    ];
    for authentication in [&[][..], &keys] {
        let environment = [authentication, &[("AGUI_METRICS__LISTEN", "127.0.0.1:0")]].concat();
        let process = Process::start(&[], &environment);
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        let get = || client.get(process.metrics_url.as_deref().unwrap());
        assert_eq!(get().send().await.unwrap().status(), 200);
        assert_eq!(get().header("host", "evil.example.com").send().await.unwrap().status(), 403);
    }
}

#[tokio::test]
async fn without_authentication_a_mounted_server_gives_neither_metrics_nor_events_away() {
    // The application does not say where requests come from.
    let (router, _handle) =
        echo().metrics(MetricsOptions::on_main_listener()).into_router().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    for path in ["/metrics", "/copilotkit/cpk-debug-events"] {
        let response = client.get(format!("http://{address}{path}")).send().await.unwrap();
        assert_eq!(response.status(), 403, "{path}");
        assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], "loopback_only");
    }
}

#[tokio::test]
async fn a_listener_of_its_own_serves_metrics_alone() {
    let process = Process::start(&[], &[("AGUI_METRICS__LISTEN", "127.0.0.1:0")]);
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let get = async |url: String| {
        let response = client.get(url).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let metrics = process.metrics_url.clone().unwrap();
    let run = client.post(format!("{}/send-message", process.url)).json(&input("Hello"));
    run.send().await.unwrap().text().await.unwrap();
    let (code, text) = get(metrics.clone()).await;
    assert_eq!(code, 200);
    assert_eq!(
        value(&text, "agui_runs_total{agent=\"demo\",outcome=\"success\",code=\"\"}"),
        1.0,
        "{text}"
    );
    assert!(
        value(&text, "agui_store_operation_duration_seconds_count{operation=\"finish\"}") >= 1.0,
        "{text}"
    );
    assert_eq!(get(metrics.replace("/metrics", "/agents")).await.0, 404);
    assert_eq!(get(format!("{}/metrics", process.url)).await.0, 404);
}

#[tokio::test]
async fn on_an_address_for_other_machines_metrics_need_a_key() {
    let environment = [
        ("AGUI_METRICS__LISTEN", "0.0.0.0:0"),
        ("AGUI_AUTH__MODE", "api_key"),
        ("AGUI_AUTH__API_KEYS", "[{ name = \"web\", env = \"AGUI_KEY_WEB\" }]"),
        ("AGUI_KEY_WEB", "open sesame"),
    ];
    let process = Process::start(&[], &environment);
    let url = process.metrics_url.as_deref().unwrap().replace("0.0.0.0", "127.0.0.1");
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    assert_eq!(client.get(&url).send().await.unwrap().status(), 401);
    assert_eq!(client.get(&url).bearer_auth("open sesame").send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn without_authentication_metrics_are_served_on_loopback_addresses_only() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = echo().metrics(MetricsOptions::on(([0, 0, 0, 0], 0).into()));
    let error = server.serve_on(listener, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains("need authentication"), "{error}");
    for more in [&[][..], &[("AGUI_AUTH__ALLOW_UNAUTHENTICATED", "true")]] {
        let mut command = std::process::Command::new(super::server::BINARY);
        command.arg("check").env("AGUI_METRICS__LISTEN", "0.0.0.0:9090").envs(more.iter().copied());
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains("only with authentication"), "{text}");
    }
}
