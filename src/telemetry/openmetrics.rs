//! From the text of `GET /metrics` to the metrics of OTLP, by OpenTelemetry's rules for Prometheus
//! (<https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/>).
//!
//! The text has everything that is counted, so no second set of instruments is needed. Counters lose the suffix `_total`,
//! which Prometheus adds again; units stay in names. An empty label is an absent one.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum, metric::Data,
        number_data_point,
    },
};

/// The time since which counters count, and that of their values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) begun: SystemTime,
    pub(super) now: SystemTime,
}

/// A metric with all its series.
#[derive(Default)]
struct Family<'t> {
    name: &'t str,
    help: &'t str,
    kind: &'t str,
    unit: &'t str,
    samples: Vec<Sample<'t>>,
}

struct Sample<'t> {
    /// What follows the name of the metric: `_total`, `_sum`, `_count`, `_bucket` or nothing.
    suffix: &'t str,
    labels: Vec<(&'t str, String)>,
    value: &'t str,
}

/// Converts a text that this server has written. Lines that are no OpenMetrics are left out.
pub(super) fn to_otlp(text: &str, times: Times) -> Vec<Metric> {
    families(text).into_iter().filter_map(|family| metric(family, times)).collect()
}

fn metric(family: Family<'_>, times: Times) -> Option<Metric> {
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    let data = match family.kind {
        "counter" => {
            let data_points = numbers(&family.samples, nanoseconds(times.begun), times);
            Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic: true })
        }
        "gauge" => Data::Gauge(Gauge { data_points: numbers(&family.samples, 0, times) }),
        "histogram" => {
            Data::Histogram(Histogram { data_points: histograms(&family.samples, times), aggregation_temporality })
        }
        _ => return None,
    };
    let is_empty = match &data {
        Data::Sum(sum) => sum.data_points.is_empty(),
        Data::Gauge(gauge) => gauge.data_points.is_empty(),
        Data::Histogram(histogram) => histogram.data_points.is_empty(),
        _ => true,
    };
    let unit = match family.unit {
        "seconds" => "s",
        "bytes" => "By",
        other => other,
    };
    (!is_empty).then(|| Metric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: unit.to_owned(),
        metadata: vec![attribute("prometheus.type", family.kind)],
        data: Some(data),
    })
}

fn numbers(samples: &[Sample<'_>], start_time_unix_nano: u64, times: Times) -> Vec<NumberDataPoint> {
    let point = |sample: &Sample<'_>| {
        let value = match sample.value.parse() {
            Ok(number) => number_data_point::Value::AsInt(number),
            Err(_) => number_data_point::Value::AsDouble(sample.value.parse().ok()?),
        };
        Some(NumberDataPoint {
            attributes: attributes(&sample.labels),
            start_time_unix_nano,
            time_unix_nano: nanoseconds(times.now),
            value: Some(value),
            ..NumberDataPoint::default()
        })
    };
    samples.iter().filter_map(point).collect()
}

/// The lines of a series follow each other. In them, a bucket counts what the ones before it count, too.
fn histograms(samples: &[Sample<'_>], times: Times) -> Vec<HistogramDataPoint> {
    let mut points: Vec<HistogramDataPoint> = Vec::new();
    let mut counted = 0;
    for sample in samples {
        let of_series = attributes(sample.labels.iter().filter(|(name, _)| *name != "le"));
        if points.last().is_none_or(|point| point.attributes != of_series) {
            counted = 0;
            points.push(HistogramDataPoint {
                attributes: of_series,
                start_time_unix_nano: nanoseconds(times.begun),
                time_unix_nano: nanoseconds(times.now),
                ..HistogramDataPoint::default()
            });
        }
        let Some(point) = points.last_mut() else { continue };
        match sample.suffix {
            "_sum" => point.sum = sample.value.parse().ok(),
            "_count" => point.count = sample.value.parse().unwrap_or_default(),
            "_bucket" => {
                let up_to: u64 = sample.value.parse().unwrap_or(counted);
                point.bucket_counts.push(up_to.saturating_sub(counted));
                counted = up_to;
                let bound =
                    sample.labels.iter().find(|(name, _)| *name == "le").and_then(|(_, value)| value.parse().ok());
                point.explicit_bounds.extend(bound.filter(|bound: &f64| bound.is_finite()));
            }
            _ => {}
        }
    }
    points
}

fn attributes<'l>(labels: impl IntoIterator<Item = &'l (&'l str, String)>) -> Vec<KeyValue> {
    let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
    labels.map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

// --- The text -----------------------------------------------------------------------------------------------------

fn families(text: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(keyword), Some(name)) = (words.next(), words.next()) else { continue };
            let value = words.next().unwrap_or_default();
            if families.last().is_none_or(|family| family.name != name) {
                families.push(Family { name, ..Family::default() });
            }
            let Some(family) = families.last_mut() else { continue };
            match keyword {
                "HELP" => family.help = value,
                "TYPE" => family.kind = value,
                "UNIT" => family.unit = value,
                _ => {}
            }
        } else if let Some(family) = families.last_mut() {
            family.samples.extend(sample(line, family.name));
        }
    }
    families
}

fn sample<'t>(line: &'t str, family: &str) -> Option<Sample<'t>> {
    let (name, rest) = line.split_at(line.find(['{', ' '])?);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    Some(Sample { suffix: name.strip_prefix(family)?, labels, value: rest.split_ascii_whitespace().next()? })
}

/// Returns the labels before the closing brace, and what follows it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, quoted) = rest.strip_prefix(',').unwrap_or(rest).split_once("=\"")?;
        let mut value = String::new();
        let mut chars = quoted.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => value.push(match chars.next()? {
                    'n' => '\n',
                    escaped => escaped,
                }),
                other => value.push(other),
            }
        }
        labels.push((name, value));
        rest = chars.as_str();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn of(text: &str) -> Vec<Metric> {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        to_otlp(text, Times { begun: at(1), now: at(2) })
    }

    #[test]
    fn a_counter_is_a_monotonic_sum_since_the_start() {
        let text = "# HELP a_runs Ended runs.\n# TYPE a_runs counter\na_runs_total{agent=\"x\",code=\"\"} 3\na_runs_total{agent=\"y\"} 0.5\n# EOF\n";
        let metrics = of(text);
        let [metric] = &metrics[..] else { panic!("{metrics:?}") };
        assert_eq!((&*metric.name, &*metric.description, &*metric.unit), ("a_runs", "Ended runs.", ""));
        assert_eq!(metric.metadata, [attribute("prometheus.type", "counter")]);
        let Some(Data::Sum(sum)) = &metric.data else { panic!("{metric:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality() == AggregationTemporality::Cumulative);
        let [first, second] = &sum.data_points[..] else { panic!("{sum:?}") };
        assert_eq!((first.start_time_unix_nano, first.time_unix_nano), (1_000_000_000, 2_000_000_000));
        assert_eq!(
            (&first.attributes[..], first.value),
            (&[attribute("agent", "x")][..], Some(number_data_point::Value::AsInt(3)))
        );
        assert_eq!(second.value, Some(number_data_point::Value::AsDouble(0.5)));
    }

    #[test]
    fn a_gauge_has_values_without_a_start() {
        let metrics = of("# HELP a_open Open.\n# TYPE a_open gauge\na_open -2\n");
        let Some(Data::Gauge(gauge)) = &metrics[0].data else { panic!("{metrics:?}") };
        let [point] = &gauge.data_points[..] else { panic!("{gauge:?}") };
        assert_eq!((point.start_time_unix_nano, point.value), (0, Some(number_data_point::Value::AsInt(-2))));
    }

    #[test]
    fn a_histogram_has_the_bounds_and_the_counts_between_them() {
        let series = |agent: &str, counts: [u64; 3], sum: f64| {
            let [first, second, all] = counts;
            format!(
                "a_time_seconds_sum{{agent=\"{agent}\"}} {sum}\na_time_seconds_count{{agent=\"{agent}\"}} {all}\n\
                 a_time_seconds_bucket{{le=\"0.5\",agent=\"{agent}\"}} {first}\n\
                 a_time_seconds_bucket{{le=\"1.0\",agent=\"{agent}\"}} {second}\n\
                 a_time_seconds_bucket{{le=\"+Inf\",agent=\"{agent}\"}} {all}\n"
            )
        };
        let head = "# HELP a_time_seconds Time.\n# TYPE a_time_seconds histogram\n# UNIT a_time_seconds seconds\n";
        let metrics = of(&format!("{head}{}{}# EOF\n", series("x", [1, 1, 4], 9.5), series("y", [0, 2, 2], 1.5)));
        let [metric] = &metrics[..] else { panic!("{metrics:?}") };
        assert_eq!((&*metric.name, &*metric.unit), ("a_time_seconds", "s"));
        let Some(Data::Histogram(histogram)) = &metric.data else { panic!("{metric:?}") };
        let found: Vec<_> =
            histogram.data_points.iter().map(|point| (point.count, point.sum, point.bucket_counts.clone())).collect();
        assert_eq!(found, [(4, Some(9.5), vec![1, 0, 3]), (2, Some(1.5), vec![0, 2, 0])]);
        for (point, agent) in histogram.data_points.iter().zip(["x", "y"]) {
            assert_eq!(
                (&point.explicit_bounds[..], &point.attributes[..]),
                (&[0.5, 1.0][..], &[attribute("agent", agent)][..])
            );
            assert_eq!(point.start_time_unix_nano, 1_000_000_000);
        }
    }

    #[test]
    fn labels_are_unescaped_and_what_is_no_sample_is_left_out() {
        let text = "# HELP g Is.\n# TYPE g gauge\ng{a=\"}, \\\"x\\\\ \\n=\",b=\"c\"} 1\ng{a=\"open} 2\nother 3\ng nothing\n# TYPE s stateset\ns 1\n";
        let metrics = of(text);
        let [metric] = &metrics[..] else { panic!("{metrics:?}") };
        let Some(Data::Gauge(gauge)) = &metric.data else { panic!("{metric:?}") };
        let [point] = &gauge.data_points[..] else { panic!("{gauge:?}") };
        assert_eq!(point.attributes, [attribute("a", "}, \"x\\ \n="), attribute("b", "c")]);
    }
}
