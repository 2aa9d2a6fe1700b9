//! `GET /metrics`: its addresses, its counts, its bounds, and the checks of Prometheus's own tool.
//! The dashboard and the alert rules in `deploy/` name only metrics that exist.

mod counts;
mod deploy;
mod llm;
mod served;

use crate::support::{provider, running as support, server};

/// Returns the value of a series, such as `agui_runs_total{agent="a"}`; 0 if it is absent.
fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

/// Returns the metrics that the table in `docs/operations.md` lists, with their types.
fn documented() -> Vec<(String, String)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("docs/operations.md")).unwrap();
    let section = text.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows
        .map(|row| row.split(" | ").map(|cell| cell.trim_matches(['`', ' '])).collect::<Vec<_>>());
    cells.map(|cells| (format!("agui_{}", cells[0]), cells[1].to_owned())).collect()
}
