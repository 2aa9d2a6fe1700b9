//! The values of labels. Each has a bounded number of values, whatever clients, models and tool servers send.

use std::{borrow::Cow, collections::BTreeSet};

use parking_lot::RwLock;
use prometheus_client::metrics::{counter::Counter, family::Family, histogram::Histogram};

/// Labels with their names.
pub(super) type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];
/// A counter for each combination of labels.
pub(super) type Counters<const N: usize> = Family<Labels<N>, Counter>;
/// A histogram for each combination of labels.
pub(super) type Histograms<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// The value for everything that has no value of its own.
pub(crate) const OTHER: &str = "other";
/// The number of different names of agents or tools, and of different pairs of a provider and a model. Names come from the
/// configuration or from the application's code, so a server that reaches this bound computes them.
pub(super) const MAX_NAMES: usize = 200;

/// The error codes of runs and model calls that this server makes. Agents and remote endpoints can send others.
pub(crate) const ERROR_CODES: &[&str] = &[
    "agent_error",
    "agent_panic",
    "agent_timeout",
    "caller_value_missing",
    "context_too_long",
    "contradictory_resume",
    "interrupt_expired",
    "invalid_replay",
    "invalid_response_schema",
    "invalid_resume_payload",
    "lease_lost",
    "log_gone",
    "max_steps",
    "model_call_malformed",
    "model_empty",
    "model_failed",
    "model_filtered",
    "model_interrupted",
    "model_not_allowed",
    "model_protocol",
    "model_rate_limited",
    "model_refused",
    "model_rejected",
    "model_timeout",
    "model_truncated",
    "model_unauthorized",
    "model_unavailable",
    "model_unreachable",
    "no_recorded_exchange",
    "no_recording",
    "protocol_violation",
    "remote_error",
    "remote_failed",
    "remote_incomplete",
    "remote_protocol",
    "remote_rejected",
    "remote_timeout",
    "remote_unreachable",
    "replay_fault",
    "response_invalid",
    "run_too_long",
    "server_lost",
    "server_shutdown",
    "store_unavailable",
];

/// Returns the code if it is one of this server's, and [`OTHER`] if not.
pub(super) fn known_code(code: &str) -> &'static str {
    ERROR_CODES.binary_search(&code).map_or(OTHER, |at| ERROR_CODES[at])
}

/// Names that are used as labels, of which the first [`MAX_NAMES`] are kept.
#[derive(Debug, Default)]
pub(super) struct BoundedNames(RwLock<BTreeSet<String>>);

impl BoundedNames {
    pub(super) fn bounded(&self, name: &str) -> String {
        let is_known = |names: &BTreeSet<String>| names.contains(name);
        if is_known(&self.0.read()) {
            return name.to_owned();
        }
        let mut names = self.0.write();
        if names.len() < MAX_NAMES || is_known(&names) {
            names.insert(name.to_owned());
            return name.to_owned();
        }
        OTHER.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the codes in the first column of a table.
    fn documented(path: &str, heading: &str) -> Vec<String> {
        let text = std::fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let section = text.split(&format!("\n{heading}\n")).nth(1).unwrap().split("\n#").next().unwrap().to_owned();
        let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next().map(str::to_owned));
        let codes = cells.flat_map(|cell| cell.split('`').step_by(2).map(str::to_owned).collect::<Vec<_>>());
        codes.filter(|code| code.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !code.is_empty()).collect()
    }

    #[test]
    fn the_codes_are_those_of_the_documentation() {
        let mut listed = documented("docs/protocol.md", "### Run errors");
        listed.extend(documented("docs/configuration.md", "#### Run errors of agents with a model"));
        listed.push("remote_error".to_owned());
        let listed: BTreeSet<_> = listed.iter().map(String::as_str).collect();
        assert_eq!(ERROR_CODES.iter().copied().collect::<BTreeSet<_>>(), listed);
        assert!(ERROR_CODES.is_sorted());
        assert_eq!((known_code("max_steps"), known_code("x"), known_code("")), ("max_steps", OTHER, OTHER));
    }
}
