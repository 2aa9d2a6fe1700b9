//! The table of metrics in `docs/operations.md`.

use std::{collections::BTreeSet, time::Duration};

use agui_base::repairs::{Partner, Repair, repaired};
use agui_observe::metrics::{
    ConnectionEnd, CountedRunEnd, Metrics, ModelCall, ModelCallOutcome, ModelPrice, TextFormat,
    ToolOutcome,
};
use agui_protocol::TokenUsage;

use super::documented;

/// Returns the metrics of a server in which each has counted once.
fn served() -> String {
    let metrics = Metrics::new([("m".to_owned(), ModelPrice::new(1.0, 1.0))].into_iter().collect());
    let (agent, time) = ("a", Some(Duration::ZERO));
    metrics.runs.ended(&CountedRunEnd {
        agent,
        first_event: time,
        first_token: time,
        ..CountedRunEnd::default()
    });
    metrics.runs.continued("handed_over", "continued");
    let outcome = ModelCallOutcome::Error("x");
    let usage = TokenUsage { input_tokens: Some(1), ..TokenUsage::default() };
    let call = ModelCall { model: "m", outcome, first_token: time, usage, ..ModelCall::default() };
    assert_eq!(metrics.models.ended(&metrics.prices, &call), Some(1e-6));
    metrics.tools.ended("t", ToolOutcome::Ok, Duration::ZERO);
    drop(metrics.store.begin("check"));
    metrics.store.failed("check", "failed");
    metrics.store.removed(1, 0);
    metrics.http.refused(404, "not_found");
    metrics.http.connection_broke(ConnectionEnd::Other);
    repaired(Partner::Page, Repair::Null);
    metrics.to_text(TextFormat::Prometheus)
}

#[test]
fn the_metrics_are_those_of_the_documentation() {
    let text = served();
    let types: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .filter(|(name, _)| name.starts_with("agui_"))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect();
    let rows = documented();
    let listed = rows.iter().map(|row| (row.name.clone(), row.kind.clone())).collect();
    assert_eq!(types, listed, "served (left), documented (right)");
    for row in rows {
        let starts = [format!("{}{{", row.name), format!("{}_count{{", row.name)];
        let series = text.lines().find(|line| starts.iter().any(|start| line.starts_with(start)));
        let has = |label| series.is_some_and(|series| series.contains(&format!("{label}=\"")));
        assert!(row.labels.iter().all(has), "{}: {series:?}", row.name);
    }
}
