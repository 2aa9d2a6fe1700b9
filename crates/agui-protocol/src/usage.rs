//! Token counts of model calls.

use super::wire_struct::wire_struct;

wire_struct! {
    without_new
    /// Token counts of one provider and model within a run. An absent count was not reported by the provider; it
    /// is not zero.
    #[derive(Default, Eq)]
    TokenUsage {} optional {
        /// The provider.
        provider: String,
        /// The model.
        model: String,
        /// All prompt tokens, cached or not.
        input_tokens: u64,
        /// All generated tokens, with reasoning.
        output_tokens: u64,
        /// Input plus output.
        total_tokens: u64,
        /// Reasoning tokens, a part of the output.
        reasoning_tokens: u64,
        /// Tokens read from a cache, a part of the input.
        cached_input_tokens: u64,
        /// Tokens written to a cache, a part of the input.
        cache_write_input_tokens: u64,
    }
}

impl TokenUsage {
    /// Adds the counts of another call to the same provider and model. A count is absent if no call has reported it.
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
    fn a_sum_distinguishes_unreported_counts_from_zero() {
        let mut total = TokenUsage { input_tokens: Some(3), ..Default::default() };
        total.add(&TokenUsage {
            input_tokens: Some(4),
            reasoning_tokens: Some(0),
            ..Default::default()
        });
        assert_eq!(total.input_tokens, Some(7));
        assert_eq!(total.reasoning_tokens, Some(0));
        assert_eq!(total.output_tokens, None);
    }
}
