//! Prometheus's own tool checks the metrics and the files in `deploy/`.

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use agui_server::{Server, agent::builtin::Echo, options::MetricsOptions};
use serde_json::Value;

use super::{
    documented,
    support::{Running, input},
};

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(deploy(file)).unwrap()
}

/// Runs `promtool`, from Debian's package `prometheus`, and returns its output. Panics if it fails.
fn promtool(arguments: &[&str], input: &str) -> String {
    let mut command = Command::new("promtool");
    let command =
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().expect("promtool is missing: install Debian's package prometheus");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(output.status.success(), "{text}\n{input}");
    text
}

#[tokio::test]
async fn promtool_finds_nothing_wrong_with_the_metrics() {
    let server = Server::new().agent("echo", Echo).metrics(MetricsOptions::on_main_listener());
    let server = Running::start(server).await;
    server.run(&input("Hi")).await.text().await.unwrap();
    server.client.get(server.url("/nowhere")).send().await.unwrap();
    let text =
        server.client.get(server.url("/metrics")).send().await.unwrap().text().await.unwrap();
    assert_eq!(promtool(&["check", "metrics"], &text), "");
}

#[test]
fn promtool_finds_nothing_wrong_with_the_configuration_and_the_rules() {
    promtool(&["check", "rules", deploy("alerts.yml").to_str().unwrap()], "");
    promtool(&["check", "config", deploy("prometheus.yml").to_str().unwrap()], "");
}

/// Returns the names of metrics in a text, without the suffixes of a histogram's series.
fn names(text: &str) -> BTreeSet<String> {
    let words = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("agui_"));
    let base = |word: &str| {
        let suffix =
            ["_bucket", "_count", "_sum"].iter().find_map(|suffix| word.strip_suffix(suffix));
        suffix.unwrap_or(word).to_owned()
    };
    words.map(base).collect()
}

#[test]
fn the_dashboard_shows_every_metric_and_no_other() {
    let dashboard: Value = serde_json::from_str(&read("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions: Vec<_> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    let shown = names(&expressions.join("\n"));
    let exist: BTreeSet<_> = documented().into_iter().map(|row| row.name).collect();
    assert_eq!(shown, exist);
    // Prometheus itself parses each expression as a rule.
    let rules = expressions.iter().enumerate().map(|(n, expression)| {
        let expression = expression.replace("$__rate_interval", "1m").replace("$instance", ".*");
        format!("      - record: dashboard:{n}\n        expr: {}\n", Value::from(expression))
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = format!("groups:\n  - name: dashboard\n    rules:\n{}", rules.collect::<String>());
    std::fs::write(file.path(), text).unwrap();
    promtool(&["check", "rules", file.path().to_str().unwrap()], "");
}

#[test]
fn the_alerts_name_metrics_that_exist() {
    let exist: BTreeSet<_> = documented().into_iter().map(|row| row.name).collect();
    let named = names(&read("alerts.yml"));
    assert!(named.len() >= 8 && named.is_subset(&exist), "{:?}", named.difference(&exist));
}
