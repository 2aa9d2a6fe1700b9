//! The metrics that the command sends: those of `GET /metrics`, in the interval, and as the variables say.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Command,
    collector::{Collector, Metric, MetricsRequest},
    running::{eventually, eventually_async, input},
    server::BINARY,
};

const CONFIG: &str = "[log]\nformat = \"json\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n[agents.e]\nkind = \"echo\"\n";
/// Longer than a test takes.
const NEVER: (&str, &str) = ("OTEL_METRIC_EXPORT_INTERVAL", "3600000");

/// A series of Prometheus: its name and its labels without empty ones.
type Series = (String, BTreeMap<String, String>);

/// Reads the text of `GET /metrics`. No label of these tests has a comma or an escaped character.
fn shown(text: &str) -> BTreeMap<Series, f64> {
    let series = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
        let labels = labels.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()));
        ((name.to_owned(), labels.filter(|(_, value)| !value.is_empty()).collect()), value.parse().unwrap())
    });
    series.collect()
}

/// Returns what Prometheus makes of metrics of OTLP.
fn as_prometheus(metrics: &[Metric]) -> BTreeMap<Series, f64> {
    let mut all = BTreeMap::new();
    for metric in metrics {
        for point in &metric.points {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let labels: BTreeMap<_, _> =
                point.attributes.iter().map(|(name, value)| (name.clone(), text(value))).collect();
            let mut put = |suffix: &str, labels: BTreeMap<_, _>, value: f64| {
                let before = all.insert((format!("{}{suffix}", metric.name), labels), value);
                assert!(before.is_none(), "twice: {}{suffix}", metric.name);
            };
            match metric.kind {
                "gauge" => put("", labels, point.value),
                "sum" => put("_total", labels, point.value),
                _ => {
                    put("_sum", labels.clone(), point.sum);
                    put("_count", labels.clone(), point.count as f64);
                    let bounds = point.bounds.iter().map(|bound| format!("{bound:?}")).chain(["+Inf".to_owned()]);
                    let mut up_to = 0;
                    for (bound, count) in bounds.zip(&point.bucket_counts) {
                        up_to += count;
                        let le = [("le".to_owned(), bound)];
                        put("_bucket", labels.clone().into_iter().chain(le).collect(), up_to as f64);
                    }
                    assert_eq!((point.bucket_counts.len(), up_to), (point.bounds.len() + 1, point.count));
                }
            }
        }
    }
    all
}

fn named<'m>(request: &'m MetricsRequest, name: &str) -> &'m Metric {
    request.metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("no {name}: {request:#?}"))
}

#[tokio::test]
async fn the_collector_gets_the_values_of_the_metrics_route() {
    let collector = Collector::start().await;
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "50"),
    ];
    let command = Command::start(CONFIG, &environment);
    for text in ["Hello", "Hello again"] {
        assert_eq!(command.run(&input(text), &[]).await.last().unwrap()["type"], "RUN_FINISHED");
    }
    let nowhere = format!("{}/nowhere", command.process.url);
    assert_eq!(command.client.get(nowhere).send().await.unwrap().status(), 404);
    let route = command.process.metrics_url.clone().unwrap();
    let metrics = async || command.client.get(&route).send().await.unwrap().text().await.unwrap();
    eventually_async("the collector has the values of the route", async || {
        let (before, sent) = (shown(&metrics().await), collector.metrics().len());
        eventually("the next metrics come", || collector.metrics().len() > sent).await;
        as_prometheus(&collector.metrics()[sent].metrics) == before
    })
    .await;

    let latest = collector.metrics().pop().unwrap();
    let runs = named(&latest, "agui_runs");
    assert_eq!((runs.kind, runs.temporality, runs.points.len()), ("sum", 2, 1));
    assert_eq!(runs.points[0].value, 2.0);
    assert_eq!(runs.description, "Ended runs by agent, outcome and error code.");
    assert!(0 < runs.points[0].start && runs.points[0].start < runs.points[0].time);
    let duration = named(&latest, "agui_run_duration_seconds");
    assert_eq!((duration.kind, duration.temporality, &*duration.unit), ("histogram", 2, "s"));
    assert_eq!((duration.points[0].count, duration.points[0].start), (2, runs.points[0].start));
    assert_eq!(named(&latest, "agui_runs_active").kind, "gauge");
    let resource = &latest.resource;
    assert_eq!(resource["service.name"], "agui-server");
    assert_eq!(resource["deployment.environment.name"], "test");
    assert!(resource["service.instance.id"].as_str().is_some_and(|id| id.len() == 36), "{resource:?}");

    command.stop().await;
    // Spans are of the same server.
    assert_eq!(&collector.spans()[0].resource, resource);
}

#[tokio::test]
async fn the_last_metrics_are_sent_at_the_end() {
    let collector = Collector::start().await;
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &*format!("{}/only/metrics", collector.url)),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=all"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-collector-key=a%20key, x-tenant=t"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "gzip"),
        ("OTEL_TRACES_EXPORTER", "none"),
        NEVER,
    ];
    let command = Command::start(CONFIG, &environment);
    command.run(&input("Hello"), &[]).await;
    command.stop().await;
    let requests = collector.metrics();
    let [request] = &requests[..] else { panic!("one request: {requests:#?}") };
    assert_eq!(named(request, "agui_runs").points[0].value, 1.0);
    // The run has ended before.
    assert_eq!(named(request, "agui_runs_active").points[0].value, 0.0);
    let header = |name: &str| request.headers[name].to_str().unwrap();
    assert_eq!((header("x-collector-key"), header("x-tenant")), ("a key", "t"));
    assert_eq!((header("content-encoding"), header("content-type")), ("gzip", "application/x-protobuf"));
}

#[tokio::test]
async fn metrics_are_sent_once_in_an_interval() {
    let collector = Collector::start().await;
    let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_METRIC_EXPORT_INTERVAL", "200")];
    let command = Command::start(CONFIG, &environment);
    eventually("five requests come", || collector.metrics().len() >= 5).await;
    let times: Vec<_> =
        collector.metrics().iter().map(|request| named(request, "agui_runs_active").points[0].time).collect();
    // A request can be late by less than an interval; then the next one comes the sooner.
    assert!(times[4] - times[0] > 600_000_000, "{times:?}");
    let begun = |request: &MetricsRequest| named(request, "agui_leases_taken_over").points[0].start;
    let requests = collector.metrics();
    assert!(requests.iter().all(|request| begun(request) == begun(&requests[0])), "all count from the start");
    command.stop().await;
}

#[tokio::test]
async fn the_variables_of_opentelemetry_turn_metrics_off() {
    for (variable, has_spans) in [(("OTEL_SDK_DISABLED", "true"), false), (("OTEL_METRICS_EXPORTER", "none"), true)] {
        let collector = Collector::start().await;
        let environment =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", &*collector.url), ("OTEL_METRIC_EXPORT_INTERVAL", "10"), variable];
        let command = Command::start(CONFIG, &environment);
        command.run(&input("Hello"), &[]).await;
        command.stop().await;
        assert!(collector.metrics().is_empty(), "{variable:?}");
        assert_eq!(!collector.spans().is_empty(), has_spans, "{variable:?}");
    }
}

#[tokio::test]
async fn each_signal_has_an_endpoint_of_its_own() {
    let (traces, metrics) = (Collector::start().await, Collector::start().await);
    let of_traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &*format!("{}/v1/traces", traces.url));
    let of_metrics = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &*format!("{}/v1/metrics", metrics.url));
    for variable in [of_traces, of_metrics] {
        let command = Command::start(CONFIG, &[variable, NEVER]);
        command.run(&input("Hello"), &[]).await;
        command.stop().await;
    }
    assert!(!traces.spans().is_empty() && traces.metrics().is_empty());
    assert!(metrics.spans().is_empty() && metrics.metrics().len() == 1);
}

#[test]
fn variables_that_cannot_be_followed_are_errors_at_start() {
    for (name, value, problem) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/json",
            "OTEL_EXPORTER_OTLP_PROTOCOL=http/json is not supported: use http/protobuf",
        ),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc", "METRICS_PROTOCOL=grpc is not supported: use http/protobuf"),
        ("OTEL_METRICS_EXPORTER", "prometheus", "OTEL_METRICS_EXPORTER=prometheus is not supported: use otlp or none"),
        ("OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "zstd", "COMPRESSION=zstd is not supported: use gzip or none"),
        ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a secret", "OTEL_EXPORTER_OTLP_METRICS_HEADERS has an invalid header"),
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "collector:4318", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is invalid"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = std::process::Command::new(BINARY)
            .args(["--listen", "127.0.0.1:0"])
            .env("AGUI_SERVER__DATA_DIR", folder.path())
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
            .env(name, value)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(problem), "{name}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
}
