//! Token counts, in the protocol's own accounting.

use serde::{Deserialize, Serialize};

/// Token counts of one provider and model within a run.
///
/// `input_tokens` and `output_tokens` are totals; the cached, cache-write and reasoning counts are
/// parts of them, never additions. `None` means that the provider did not say, which is not zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    /// Which provider served the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Which model served them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Every prompt token, cached or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Every generated token, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input plus output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The part of the output that was reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// The part of the input that was read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// The part of the input that was written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<u64>,
}

impl TokenUsage {
    /// Adds the counts of another call of the same provider and model. A count stays absent only
    /// while no call has reported it.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: &mut Option<u64>, b: Option<u64>| {
            if let Some(b) = b {
                *a = Some(a.unwrap_or(0).saturating_add(b));
            }
        };
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.total_tokens, other.total_tokens);
        sum(&mut self.reasoning_tokens, other.reasoning_tokens);
        sum(&mut self.cached_input_tokens, other.cached_input_tokens);
        sum(&mut self.cache_write_input_tokens, other.cache_write_input_tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_keeps_an_unreported_count_absent_and_a_reported_zero_zero() {
        let mut total = TokenUsage { input_tokens: Some(3), ..Default::default() };
        total.add(&TokenUsage { input_tokens: Some(4), reasoning_tokens: Some(0), ..Default::default() });
        assert_eq!(total.input_tokens, Some(7));
        assert_eq!(total.reasoning_tokens, Some(0));
        assert_eq!(total.output_tokens, None);
    }
}
