//! The variables of OpenTelemetry that the command follows, and those that it refuses.

use crate::support::server::BINARY;

#[test]
fn variables_that_cannot_be_followed_are_errors_at_start() {
    for (name, value, problem) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/json",
            "OTEL_EXPORTER_OTLP_PROTOCOL=http/json is not supported: use http/protobuf",
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "grpc",
            "TRACES_PROTOCOL=grpc is not supported: use http/protobuf",
        ),
        (
            "OTEL_TRACES_EXPORTER",
            "zipkin",
            "OTEL_TRACES_EXPORTER=zipkin is not supported: use otlp or none",
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "collector:4318",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is invalid",
        ),
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
    }
}
