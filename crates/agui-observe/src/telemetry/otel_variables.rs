//! The environment variables of OpenTelemetry that enable the export of traces and name its
//! service.

use std::{env, time::Duration};

use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use uuid::Uuid;

/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const SERVICE_NAME: &str = "service.name";
const SERVICE_INSTANCE_ID: &str = "service.instance.id";

/// Returns whether a collector is named, and traces are not turned off.
///
/// # Errors
/// The problem of an unsupported variable. Values that may be secrets are not shown.
pub(super) fn is_enabled() -> Result<bool, String> {
    let unsupported = |variable: &str, value: &str, supported: &str| {
        Err(format!("{variable}={value} is not supported: use {supported}"))
    };
    let is_disabled =
        variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let Some((name, endpoint)) = setting("ENDPOINT").filter(|_| !is_disabled) else {
        return Ok(false);
    };
    match variable("OTEL_TRACES_EXPORTER") {
        Some(value) if value == "none" => return Ok(false),
        Some(value) if value != "otlp" => {
            return unsupported("OTEL_TRACES_EXPORTER", &value, "otlp or none");
        }
        _ => {}
    }
    if let Some((name, value)) = setting("PROTOCOL").filter(|(_, value)| value != "http/protobuf") {
        return unsupported(&name, &value, "http/protobuf");
    }
    match endpoint.parse::<reqwest::Url>() {
        Ok(url) if ["http", "https"].contains(&url.scheme()) => Ok(true),
        _ => Err(format!(
            "{name} is invalid: use the URL of a collector, such as http://localhost:4318"
        )),
    }
}

/// The time of a request.
pub(super) fn request_timeout() -> Duration {
    let millis = setting("TIMEOUT")
        .and_then(|(_, value)| value.trim().parse().ok())
        .filter(|millis| *millis > 0);
    millis.map_or(REQUEST_TIMEOUT, Duration::from_millis)
}

/// Returns the name and the value of the variable of traces alone, or else of the variable of all
/// signals.
fn setting(name: &str) -> Option<(String, String)> {
    let names = [format!("OTEL_EXPORTER_OTLP_TRACES_{name}"), format!("OTEL_EXPORTER_OTLP_{name}")];
    names.into_iter().find_map(|name| variable(&name).map(|value| (name, value)))
}

/// `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, with the defaults of this program. Without
/// an id, the spans of two servers of a service would be indistinguishable.
pub(super) fn resource() -> Resource {
    let attributes = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_set = |name: &str| {
        attributes.split(',').any(|entry| entry.split('=').next().map(str::trim) == Some(name))
    };
    let mut resource = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if !is_set(SERVICE_INSTANCE_ID) {
        resource =
            resource.with_attribute(KeyValue::new(SERVICE_INSTANCE_ID, Uuid::new_v4().to_string()));
    }
    if variable("OTEL_SERVICE_NAME").is_none() && !is_set(SERVICE_NAME) {
        resource = resource.with_service_name(agui_base::SERVER_NAME);
    }
    resource.build()
}

/// Returns the value of a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
