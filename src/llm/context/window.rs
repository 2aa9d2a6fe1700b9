//! The window of a model: what its configuration, the table of known models and the provider's answers say about it.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::options::ContextOptions;

/// Shorter requests say nothing about the ratio: the provider's own instructions weigh too much in them.
const MIN_COUNTED_ESTIMATE: u64 = 1_000;
/// The ratio of the provider's count to the estimate. Outside of it, a count is about something else.
const RATIO_RANGE: (f64, f64) = (0.4, 2.5);
/// The smallest ratio seen with texts: used to decide that a request surely does not fit, before any count is known.
const CAUTIOUS_RATIO: f64 = 0.6;
/// The share of a refused request's tokens that the next request may have.
const SHARE_OF_REFUSED: f64 = 0.9;
/// Refusals are forgotten after this time: estimates of other texts differ, and shortened requests cannot show that longer
/// ones fit.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(600);
/// The tokens that are kept free for the answer if `max_tokens` is not set, or an eighth of the window if that is less.
const DEFAULT_RESERVE: u64 = 16_384;

#[derive(Debug)]
pub(super) struct ContextWindow {
    pub(super) options: ContextOptions,
    /// By model. A request can choose among the models of the configuration only, so there are few.
    learned: Mutex<HashMap<String, Learned>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Learned {
    /// The provider's count of the last request, divided by the estimate.
    ratio: Option<f64>,
    /// The estimate of the last request that the provider refused as too long, and when this was.
    refused: Option<(u64, Instant)>,
}

impl ContextWindow {
    pub(super) fn new(options: ContextOptions) -> Self {
        Self { options, learned: Mutex::default() }
    }

    /// Returns the largest estimate of a request that leaves space for the answer; `None` if nothing is known.
    pub(super) fn limit(&self, model: &str) -> Option<u64> {
        let learned = self.learned(model);
        let fits = self.input_tokens(model).map(|tokens| tokens as f64 / learned.ratio.unwrap_or(1.0));
        let refused = learned.refused.filter(|(_, at)| at.elapsed() < REFUSAL_LIFETIME);
        let refused = refused.map(|(estimate, _)| estimate as f64 * SHARE_OF_REFUSED);
        let limit = match (fits, refused) {
            (Some(fits), Some(refused)) => fits.min(refused),
            (fits, refused) => fits.or(refused)?,
        };
        Some(limit as u64)
    }

    /// Returns the window if a request with this estimate surely does not fit, even without an answer.
    pub(super) fn is_surely_exceeded(&self, model: &str, estimate: u64) -> Option<u64> {
        let total = self.window(model)?.0;
        let ratio = self.learned(model).ratio.map_or(CAUTIOUS_RATIO, |ratio| ratio * SHARE_OF_REFUSED);
        (estimate as f64 * ratio > total as f64).then_some(total)
    }

    /// Returns about how many tokens the provider would count.
    pub(super) fn corrected(&self, model: &str, estimate: u64) -> u64 {
        (estimate as f64 * self.learned(model).ratio.unwrap_or(1.0)) as u64
    }

    /// Corrects later estimates by the provider's count of a request.
    pub(super) fn counted(&self, model: &str, estimate: u64, input_tokens: u64) {
        if estimate < MIN_COUNTED_ESTIMATE || input_tokens == 0 {
            return;
        }
        let ratio = (input_tokens as f64 / estimate as f64).clamp(RATIO_RANGE.0, RATIO_RANGE.1);
        self.learn(model, |learned| {
            learned.ratio = Some(ratio);
            // The window is larger than that refusal said, such as after a change at the provider.
            learned.refused = learned.refused.filter(|(refused, _)| *refused > estimate);
        });
    }

    pub(super) fn refused(&self, model: &str, estimate: u64) {
        self.learn(model, |learned| learned.refused = Some((estimate, Instant::now())));
    }

    /// Returns the window, and the part of it that the input may fill.
    fn window(&self, model: &str) -> Option<(u64, u64)> {
        match self.options.window {
            Some(tokens) => Some((tokens, tokens)),
            None => self.options.known_models.window(model).map(|known| (known.total, known.input)),
        }
    }

    fn input_tokens(&self, model: &str) -> Option<u64> {
        let (total, input) = self.window(model)?;
        let most = self.options.max_tokens.map(u64::from);
        let reserve = most.unwrap_or(DEFAULT_RESERVE.min(total / 8)).min(total / 2);
        Some(input.min(total - reserve))
    }

    fn learned(&self, model: &str) -> Learned {
        let learned = self.learned.lock();
        learned.get(model).copied().unwrap_or_default()
    }

    fn learn(&self, model: &str, change: impl FnOnce(&mut Learned)) {
        let mut learned = self.learned.lock();
        change(learned.entry(model.to_owned()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(tokens: Option<u64>, max_tokens: Option<u32>) -> ContextWindow {
        ContextWindow::new(ContextOptions { window: tokens, max_tokens, ..ContextOptions::default() })
    }

    #[test]
    fn the_answer_has_space_and_an_unknown_model_has_no_limit() {
        assert_eq!(window(Some(100_000), Some(20_000)).limit("m"), Some(80_000));
        assert_eq!(window(Some(100_000), None).limit("m"), Some(87_500));
        assert_eq!(window(Some(1_000_000), None).limit("m"), Some(1_000_000 - DEFAULT_RESERVE));
        assert_eq!(window(Some(10_000), Some(50_000)).limit("m"), Some(5_000));
        assert_eq!(window(None, None).limit("m"), None);
        assert_eq!(window(None, Some(64_000)).limit("gpt-5-mini"), Some(272_000));
        assert_eq!(window(Some(8_000), Some(1_000)).limit("gpt-5-mini"), Some(7_000), "the configuration goes first");
    }

    #[test]
    fn counts_of_the_provider_correct_the_estimate_of_the_same_model() {
        let window = window(Some(100_000), Some(20_000));
        window.counted("m", 10, 10_000);
        assert_eq!(window.limit("m"), Some(80_000), "the request was too short to say something");
        window.counted("m", 10_000, 20_000);
        assert_eq!((window.limit("m"), window.limit("other")), (Some(40_000), Some(80_000)));
        assert_eq!(window.corrected("m", 10), 20);
        window.counted("m", 10_000, 1_000_000);
        assert_eq!(window.limit("m"), Some(32_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_forgotten_after_a_while() {
        let window = window(None, None);
        window.refused("m", 10_000);
        tokio::time::advance(REFUSAL_LIFETIME - Duration::from_secs(1)).await;
        assert_eq!(window.limit("m"), Some(9_000));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(window.limit("m"), None);
    }

    #[test]
    fn a_refusal_limits_later_requests_until_a_longer_one_is_accepted() {
        let window = window(None, None);
        window.refused("m", 10_000);
        assert_eq!(window.limit("m"), Some(9_000));
        window.counted("m", 8_000, 8_000);
        assert_eq!(window.limit("m"), Some(9_000));
        window.counted("m", 12_000, 12_000);
        assert_eq!(window.limit("m"), None);
    }

    #[test]
    fn only_a_clear_excess_is_certain() {
        let window = window(Some(100_000), Some(20_000));
        assert_eq!(window.is_surely_exceeded("m", 120_000), None);
        assert_eq!(window.is_surely_exceeded("m", 170_000), Some(100_000));
        window.counted("m", 50_000, 50_000);
        assert_eq!(window.is_surely_exceeded("m", 120_000), Some(100_000));
    }
}
