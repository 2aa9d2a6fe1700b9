//! `GET /metrics`: its addresses, its counts, its bounds, and the checks of Prometheus's own tool.
//! The documentation lists them, and the dashboard and the alert rules in `deploy/` name only
//! metrics that exist.

mod counts;
mod deploy;
mod documented;
mod llm;
mod served;

use crate::support::{provider, running as support, server};

/// Returns the value of a series, such as `agui_runs_total{agent="a"}`; 0 if it is absent.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

/// A row of the table of metrics in `docs/operations.md`.
struct DocumentedMetric {
    name: String,
    kind: String,
    labels: Vec<String>,
}

fn documented() -> Vec<DocumentedMetric> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/operations.md")).unwrap();
    let section = text.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let plain = |text: &str| text.trim_matches(['`', ' ']).to_owned();
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').collect();
        let labels = cells[2].split(", ").map(plain).filter(|label| !label.is_empty());
        DocumentedMetric {
            name: format!("agui_{}", plain(cells[0])),
            kind: plain(cells[1]),
            labels: labels.collect(),
        }
    })
    .collect()
}
