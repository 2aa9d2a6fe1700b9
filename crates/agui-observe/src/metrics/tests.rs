use std::{collections::BTreeSet, time::Duration};

use super::*;

fn run<'r>(agent: &'r str, code: Option<&'r str>) -> CountedRunEnd<'r> {
    CountedRunEnd { agent, outcome: "failed", code, ..CountedRunEnd::default() }
}

#[test]
fn two_servers_in_one_process_count_apart() {
    let (one, two) = (Metrics::default(), Metrics::default());
    one.clone().runs.ended(&run("a", None));
    assert!(
        one.to_text(TextFormat::Prometheus)
            .contains("agui_runs_total{agent=\"a\",outcome=\"failed\",code=\"\"} 1")
    );
    assert!(!two.to_text(TextFormat::Prometheus).contains("agent="));
}

#[test]
fn names_beyond_the_bound_and_unknown_codes_are_counted_as_other() {
    let metrics = Metrics::default();
    for n in 0..2_000 {
        let name = format!("name-{n}");
        metrics.runs.ended(&run(&name, Some(&name)));
        metrics.tools.ended(&name, ToolOutcome::Ok, Duration::ZERO);
        metrics.models.ended(
            &metrics.prices,
            &ModelCall { provider: &name, model: &name, ..ModelCall::default() },
        );
    }
    let text = metrics.to_text(TextFormat::Prometheus);
    let series = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    for start in ["agui_runs_total{", "agui_tool_calls_total{", "agui_model_calls_total{"] {
        assert_eq!(series(start), labels::MAX_NAMES + 1, "{start}");
    }
    assert!(text.contains("agui_tool_calls_total{tool=\"other\",outcome=\"ok\"}"), "{text}");
    let codes: BTreeSet<_> =
        text.lines().filter_map(|line| line.split("code=\"").nth(1)?.split('"').next()).collect();
    assert_eq!(codes.into_iter().collect::<Vec<_>>(), ["other"]);
}

#[test]
fn providers_of_one_model_are_bounded() {
    let metrics = Metrics::default();
    for n in 0..2_000 {
        let provider = format!("provider-{n}");
        let call = ModelCall { provider: &provider, model: "m", ..ModelCall::default() };
        metrics.models.ended(&metrics.prices, &call);
    }
    let text = metrics.to_text(TextFormat::Prometheus);
    let series = text.lines().filter(|line| line.starts_with("agui_model_calls_total{"));
    assert_eq!(series.count(), labels::MAX_NAMES + 1);
    assert!(text.contains("agui_model_calls_total{provider=\"other\",model=\"other\""), "{text}");
}

#[test]
fn a_run_has_a_cost_if_all_its_models_have_a_price() {
    let prices: Prices = [
        ("m".to_owned(), ModelPrice::new(2.0, 4.0)),
        ("free".to_owned(), ModelPrice::new(0.0, 0.0)),
    ]
    .into_iter()
    .collect();
    let of = |model: &str| agui_protocol::TokenUsage {
        model: Some(model.to_owned()),
        input_tokens: Some(1_000_000),
        output_tokens: Some(500_000),
        ..Default::default()
    };
    assert_eq!(prices.cost_of_run(&[of("m"), of("free"), of("m")]), Some(8.0));
    assert_eq!(prices.cost_of_run(&[of("m"), of("other")]), None);
    assert_eq!(prices.cost_of_run(&[]), None);
}
