//! The prices of models, from which the cost of calls is computed.

use std::collections::HashMap;

use serde::Deserialize;

use agui_protocol::TokenUsage;

const TOKENS_PER_PRICE: f64 = 1e6;

/// The prices of models, by the name in an agent's `model`. The currency is the operator's choice.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Prices(HashMap<String, ModelPrice>);

/// The prices of a model, each for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelPrice {
    /// The price of a million input tokens.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub input: f64,
    /// The price of a million output tokens, reasoning included.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub output: f64,
    /// The price of a million input tokens that were read from the provider's cache. Default: that of `input`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub cached_input: Option<f64>,
    /// The price of a million input tokens that were written to the provider's cache. Default: that of `input`.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub cache_write: Option<f64>,
}

impl ModelPrice {
    /// Creates prices of input and output alone.
    pub fn new(input: f64, output: f64) -> Self {
        Self { input, output, cached_input: None, cache_write: None }
    }

    fn cost(&self, usage: &TokenUsage) -> f64 {
        let count = |tokens: Option<u64>| tokens.unwrap_or(0);
        let (cached, written) =
            (count(usage.cached_input_tokens), count(usage.cache_write_input_tokens));
        let plain = count(usage.input_tokens).saturating_sub(cached).saturating_sub(written);
        let sum = plain as f64 * self.input
            + cached as f64 * self.cached_input.unwrap_or(self.input)
            + written as f64 * self.cache_write.unwrap_or(self.input)
            + count(usage.output_tokens) as f64 * self.output;
        sum / TOKENS_PER_PRICE
    }

    fn is_valid(&self) -> bool {
        let prices = [Some(self.input), Some(self.output), self.cached_input, self.cache_write];
        prices.into_iter().flatten().all(|price| price.is_finite() && price >= 0.0)
    }
}

impl Prices {
    /// Returns the cost of a call, or `None` if the model has no price.
    #[doc(hidden)]
    pub fn cost(&self, model: &str, usage: &TokenUsage) -> Option<f64> {
        self.0.get(model).map(|price| price.cost(usage))
    }

    /// Returns the cost of a run, or `None` if it has used no tokens, or tokens of a model without
    /// a price.
    #[doc(hidden)]
    pub fn cost_of_run(&self, usage: &[TokenUsage]) -> Option<f64> {
        let costs = usage.iter().map(|usage| self.cost(usage.model.as_deref()?, usage));
        costs.sum::<Option<f64>>().filter(|_| !usage.is_empty())
    }

    /// Returns a model with a price that is negative or not a number. A server with such prices does not start.
    pub fn find_invalid(&self) -> Option<&str> {
        self.0.iter().find(|(_, price)| !price.is_valid()).map(|(model, _)| model.as_str())
    }
}

impl FromIterator<(String, ModelPrice)> for Prices {
    fn from_iter<I: IntoIterator<Item = (String, ModelPrice)>>(prices: I) -> Self {
        Self(prices.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_a_part_of_the_input_with_a_price_of_their_own() {
        let price = ModelPrice {
            cached_input: Some(0.1),
            cache_write: Some(1.25),
            ..ModelPrice::new(1.0, 10.0)
        };
        let prices: Prices = [("m".to_owned(), price)].into_iter().collect();
        let usage = TokenUsage {
            input_tokens: Some(1_000_000),
            cached_input_tokens: Some(400_000),
            cache_write_input_tokens: Some(100_000),
            output_tokens: Some(50_000),
            ..TokenUsage::default()
        };
        let cost = prices.cost("m", &usage).unwrap();
        assert!((cost - (0.5 + 0.04 + 0.125 + 0.5)).abs() < 1e-9, "{cost}");
        assert_eq!(prices.cost("unknown", &usage), None);
        assert_eq!(prices.cost("m", &TokenUsage::default()), Some(0.0));
    }
}
