//! The text of `GET /metrics`: OpenMetrics for clients that accept it, otherwise Prometheus' older text format.

use std::fmt::Write as _;

use prometheus_client::{encoding, registry::Registry};

/// The format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    Prometheus,
    OpenMetrics,
}

impl TextFormat {
    /// Returns the format for the values of the header `Accept`.
    pub fn negotiate<'a>(mut accept: impl Iterator<Item = &'a str>) -> Self {
        if accept.any(|value| value.contains("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

pub(super) fn encode(registry: &Registry, format: TextFormat) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = encoding::text::encode(&mut text, registry);
    match format {
        TextFormat::OpenMetrics => text,
        TextFormat::Prometheus => to_prometheus(&text),
    }
}

/// OpenMetrics leaves `_total` out of a counter's description, and has units and an end mark.
fn to_prometheus(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let _ = help.take().map(|(_, help)| writeln!(out, "# HELP {name}{suffix} {help}"));
            let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with("# ") {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_described_under_their_whole_name() {
        let text = "# HELP a_b Counts.\n# TYPE a_b counter\n# UNIT a_b b\na_b_total 1\n# HELP g Is.\n# TYPE g gauge\ng 2\n# EOF\n";
        let expected = "# HELP a_b_total Counts.\n# TYPE a_b_total counter\na_b_total 1\n# HELP g Is.\n# TYPE g gauge\ng 2\n";
        assert_eq!(to_prometheus(text), expected);
    }

    #[test]
    fn openmetrics_is_sent_to_clients_that_accept_it() {
        let of = |accept: &[&'static str]| TextFormat::negotiate(accept.iter().copied());
        assert_eq!(
            of(&["application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"]),
            TextFormat::OpenMetrics
        );
        assert_eq!((of(&[]), of(&["*/*"])), (TextFormat::Prometheus, TextFormat::Prometheus));
    }
}
