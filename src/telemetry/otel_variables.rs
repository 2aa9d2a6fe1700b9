//! The environment variables of OpenTelemetry that say what is exported, to where, and as whom.

use std::{env, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use percent_encoding::percent_decode_str;
use uuid::Uuid;

/// The default of `OTEL_EXPORTER_OTLP_TIMEOUT`.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The default of `OTEL_METRIC_EXPORT_INTERVAL`.
const METRIC_INTERVAL: Duration = Duration::from_secs(60);
const SERVICE_NAME: &str = "service.name";
const SERVICE_INSTANCE_ID: &str = "service.instance.id";

/// A variable that cannot be followed. Values that may be secrets are not shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidVariable {
    #[error("{variable}={value} is not supported: use {supported}")]
    Unsupported { variable: String, value: String, supported: &'static str },
    #[error("{0} is invalid: use the URL of a collector, such as http://localhost:4318")]
    Url(String),
    #[error("{0} has an invalid header: use NAME=VALUE, separated by commas")]
    Header(String),
}

/// What is exported on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
}

/// A variable that is set.
struct Setting {
    variable: String,
    value: String,
}

impl Signal {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    fn in_variables(self) -> &'static str {
        match self {
            Self::Traces => "TRACES",
            Self::Metrics => "METRICS",
        }
    }

    /// The name of the variable of this signal alone.
    fn own_variable(self, name: &str) -> String {
        format!("OTEL_EXPORTER_OTLP_{}_{name}", self.in_variables())
    }

    /// Returns the variable of this signal alone, otherwise that of all signals.
    fn setting(self, name: &str) -> Option<Setting> {
        [self.own_variable(name), format!("OTEL_EXPORTER_OTLP_{name}")]
            .into_iter()
            .find_map(|name| variable(&name).map(|value| Setting { variable: name, value }))
    }

    /// Returns the URL for requests. `None`: no collector is named, or the signal is turned off.
    pub(super) fn endpoint(self) -> Result<Option<reqwest::Url>, InvalidVariable> {
        let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let Some(endpoint) = self.setting("ENDPOINT").filter(|_| !is_disabled) else { return Ok(None) };
        let exporter = format!("OTEL_{}_EXPORTER", self.in_variables());
        match variable(&exporter) {
            Some(value) if value == "none" => return Ok(None),
            Some(value) if value != "otlp" => {
                return Err(InvalidVariable::Unsupported { variable: exporter, value, supported: "otlp or none" });
            }
            _ => {}
        }
        if let Some(setting) = self.setting("PROTOCOL").filter(|setting| setting.value != "http/protobuf") {
            return Err(setting.unsupported("http/protobuf"));
        }
        let Setting { variable, value } = endpoint;
        // The variable of all signals has the base of their URLs.
        let url: Result<reqwest::Url, _> = match variable == self.own_variable("ENDPOINT") {
            true => value.parse(),
            false => format!("{}/v1/{}", value.trim_end_matches('/'), self.as_str()).parse(),
        };
        match url {
            Ok(url) if ["http", "https"].contains(&url.scheme()) => Ok(Some(url)),
            _ => Err(InvalidVariable::Url(variable)),
        }
    }

    /// The time of a request.
    pub(super) fn timeout(self) -> Duration {
        self.setting("TIMEOUT").and_then(|setting| milliseconds(&setting.value)).unwrap_or(REQUEST_TIMEOUT)
    }

    /// Returns the headers of requests. In the variable, values are percent-encoded.
    pub(super) fn headers(self) -> Result<HeaderMap, InvalidVariable> {
        let Some(Setting { variable, value }) = self.setting("HEADERS") else { return Ok(HeaderMap::new()) };
        let parse = |entry: &str| {
            let (name, value) = entry.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            let mut value = HeaderValue::from_str(&value).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
        };
        let entries = value.split(',').filter(|entry| !entry.trim().is_empty());
        entries.map(parse).collect::<Option<_>>().ok_or(InvalidVariable::Header(variable))
    }

    /// True if requests are to be compressed.
    pub(super) fn is_compressed(self) -> Result<bool, InvalidVariable> {
        match self.setting("COMPRESSION") {
            Some(setting) if setting.value == "gzip" => Ok(true),
            Some(setting) if setting.value != "none" => Err(setting.unsupported("gzip or none")),
            _ => Ok(false),
        }
    }
}

impl Setting {
    fn unsupported(self, supported: &'static str) -> InvalidVariable {
        InvalidVariable::Unsupported { variable: self.variable, value: self.value, supported }
    }
}

/// The time between exports of metrics.
pub(super) fn metric_interval() -> Duration {
    variable("OTEL_METRIC_EXPORT_INTERVAL").and_then(|value| milliseconds(&value)).unwrap_or(METRIC_INTERVAL)
}

/// `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, with the defaults of this program. Without an id, the metrics of two
/// servers of a service could not be told apart.
pub(super) fn resource() -> Resource {
    let attributes = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_set = |name: &str| attributes.split(',').any(|entry| entry.split('=').next().map(str::trim) == Some(name));
    let mut resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if !is_set(SERVICE_INSTANCE_ID) {
        resource = resource.with_attribute(KeyValue::new(SERVICE_INSTANCE_ID, Uuid::new_v4().to_string()));
    }
    if variable("OTEL_SERVICE_NAME").is_none() && !is_set(SERVICE_NAME) {
        resource = resource.with_service_name(env!("CARGO_PKG_NAME"));
    }
    resource.build()
}

/// Returns the value of a variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// `None` for zero, too.
fn milliseconds(text: &str) -> Option<Duration> {
    text.trim().parse().ok().filter(|number| *number > 0).map(Duration::from_millis)
}
