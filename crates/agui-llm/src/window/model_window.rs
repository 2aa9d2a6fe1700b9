//! The window of a model: what its configuration, the table of known models and the provider's answers say about it.

use super::options::WindowOptions;
use crate::{
    learned::{Learned, Scope},
    model::{Model, ModelRequest},
};
use agui_store::ThreadKey;

/// Shorter requests say nothing about the ratio: the provider's own instructions weigh too much in them.
const MIN_COUNTED_ESTIMATE: u64 = 1_000;
/// The ratio of the provider's count to the estimate. Outside of it, a count is about something else.
const RATIO_RANGE: (f64, f64) = (0.4, 2.5);
/// The smallest ratio seen with texts: used to decide that a request surely does not fit, before any count is known.
const CAUTIOUS_RATIO: f64 = 0.6;
/// The share of a refused request's tokens that the next request may have.
const SHARE_OF_REFUSED: f64 = 0.9;
/// The tokens that are kept free for the answer if `max_tokens` is not set, or an eighth of the window if that is less.
const DEFAULT_RESERVE: u64 = 16_384;

#[derive(Debug)]
pub(crate) struct ModelWindow {
    pub(crate) options: WindowOptions,
    /// By model, the provider's count of the last request, divided by the estimate. It depends on the texts.
    ratios: Learned<f64>,
    /// By model, the estimate of the last request that the provider refused as too long.
    refused: Learned<u64>,
}

/// The key of what is learned about a window: the thread, and the model.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    thread: Option<ThreadKey>,
    pub(crate) model: String,
}

impl Asked {
    pub(crate) fn new(
        thread: Option<&ThreadKey>,
        request: &ModelRequest,
        model: &dyn Model,
    ) -> Self {
        let name = request.model.as_deref().unwrap_or(model.name());
        Self { thread: thread.cloned(), model: name.to_owned() }
    }
}

impl ModelWindow {
    pub(crate) fn new(options: WindowOptions) -> Self {
        Self { options, ratios: Learned::by(Scope::Thread), refused: Learned::by(Scope::Thread) }
    }

    /// Returns the largest estimate of a request that leaves space for the answer; `None` if nothing is known.
    pub(super) fn limit(&self, asked: &Asked) -> Option<u64> {
        let ratio = self.ratio(asked).unwrap_or(1.0);
        let fits = self.input_tokens(&asked.model).map(|tokens| tokens as f64 / ratio);
        let fits = fits.map(|limit| limit as u64);
        match (fits, self.refused_limit(asked)) {
            (Some(fits), Some(refused)) => Some(fits.min(refused)),
            (fits, refused) => fits.or(refused),
        }
    }

    /// Returns the largest estimate by what the provider refused; `None` if it has refused nothing.
    pub(crate) fn refused_limit(&self, asked: &Asked) -> Option<u64> {
        let refused = self.refused.get(asked.thread.as_ref(), &asked.model)?;
        Some((refused as f64 * SHARE_OF_REFUSED) as u64)
    }

    /// Returns the tokens that the model can read and write, if they are known.
    pub(crate) fn known_tokens(&self, asked: &Asked) -> Option<u64> {
        self.window(&asked.model).map(|(total, _)| total)
    }

    /// Returns the window if a request with this estimate surely does not fit, even without an answer.
    pub(super) fn is_surely_exceeded(&self, asked: &Asked, estimate: u64) -> Option<u64> {
        let total = self.window(&asked.model)?.0;
        let ratio = self.ratio(asked).map_or(CAUTIOUS_RATIO, |ratio| ratio * SHARE_OF_REFUSED);
        (estimate as f64 * ratio > total as f64).then_some(total)
    }

    /// Returns the count that the provider would report, about.
    pub(super) fn corrected(&self, asked: &Asked, estimate: u64) -> u64 {
        (estimate as f64 * self.ratio(asked).unwrap_or(1.0)) as u64
    }

    /// Corrects later estimates by the provider's count of a request.
    pub(super) fn counted(&self, asked: &Asked, estimate: u64, input_tokens: u64) {
        if estimate < MIN_COUNTED_ESTIMATE || input_tokens == 0 {
            return;
        }
        let ratio = (input_tokens as f64 / estimate as f64).clamp(RATIO_RANGE.0, RATIO_RANGE.1);
        let (thread, model) = (asked.thread.as_ref(), &asked.model);
        self.ratios.set(thread, model, ratio);
        // The window is larger than that refusal said, such as after a change at the provider.
        if self.refused.get(thread, model).is_some_and(|refused| refused <= estimate) {
            self.refused.forget(thread, model);
        }
    }

    pub(crate) fn refused(&self, asked: &Asked, estimate: u64) {
        self.refused.set(asked.thread.as_ref(), &asked.model, estimate);
    }

    fn ratio(&self, asked: &Asked) -> Option<f64> {
        self.ratios.get(asked.thread.as_ref(), &asked.model)
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(tokens: Option<u64>, max_tokens: Option<u32>) -> ModelWindow {
        ModelWindow::new(WindowOptions { window: tokens, max_tokens, ..WindowOptions::default() })
    }

    fn asked(model: &str) -> Asked {
        Asked {
            thread: Some(ThreadKey { owner: "key:ann".into(), id: "t".into() }),
            model: model.to_owned(),
        }
    }

    #[test]
    fn the_answer_has_space_and_an_unknown_model_has_no_limit() {
        assert_eq!(window(Some(100_000), Some(20_000)).limit(&asked("m")), Some(80_000));
        assert_eq!(window(Some(100_000), None).limit(&asked("m")), Some(87_500));
        assert_eq!(
            window(Some(1_000_000), None).limit(&asked("m")),
            Some(1_000_000 - DEFAULT_RESERVE)
        );
        assert_eq!(window(Some(10_000), Some(50_000)).limit(&asked("m")), Some(5_000));
        assert_eq!(window(None, None).limit(&asked("m")), None);
        assert_eq!(window(None, Some(64_000)).limit(&asked("gpt-5-mini")), Some(272_000));
        assert_eq!(
            window(Some(8_000), Some(1_000)).limit(&asked("gpt-5-mini")),
            Some(7_000),
            "the configuration goes first"
        );
    }

    #[test]
    fn counts_of_the_provider_correct_the_estimate_of_the_same_model() {
        let window = window(Some(100_000), Some(20_000));
        window.counted(&asked("m"), 10, 10_000);
        assert_eq!(
            window.limit(&asked("m")),
            Some(80_000),
            "the request was too short to say something"
        );
        window.counted(&asked("m"), 10_000, 20_000);
        assert_eq!(
            (window.limit(&asked("m")), window.limit(&asked("other"))),
            (Some(40_000), Some(80_000))
        );
        assert_eq!(window.corrected(&asked("m"), 10), 20);
        window.counted(&asked("m"), 10_000, 1_000_000);
        assert_eq!(window.limit(&asked("m")), Some(32_000));
    }

    #[test]
    fn a_refusal_limits_later_requests_until_a_longer_one_is_accepted() {
        let window = window(None, None);
        window.refused(&asked("m"), 10_000);
        assert_eq!(window.limit(&asked("m")), Some(9_000));
        window.counted(&asked("m"), 8_000, 8_000);
        assert_eq!(window.limit(&asked("m")), Some(9_000));
        window.counted(&asked("m"), 12_000, 12_000);
        assert_eq!(window.limit(&asked("m")), None);
    }

    #[test]
    fn only_a_clear_excess_is_certain() {
        let window = window(Some(100_000), Some(20_000));
        assert_eq!(window.is_surely_exceeded(&asked("m"), 120_000), None);
        assert_eq!(window.is_surely_exceeded(&asked("m"), 170_000), Some(100_000));
        window.counted(&asked("m"), 50_000, 50_000);
        assert_eq!(window.is_surely_exceeded(&asked("m"), 120_000), Some(100_000));
    }

    #[test]
    fn what_the_texts_of_a_thread_teach_changes_no_other_thread() {
        let window = window(Some(100_000), Some(20_000));
        window.counted(&asked("m"), 10_000, 25_000);
        window.refused(&asked("m"), 20_000);
        assert_eq!(window.limit(&asked("m")), Some(18_000));
        for (owner, id) in [("key:bob", "t"), ("key:ann", "u")] {
            let thread = Some(ThreadKey { owner: owner.into(), id: id.into() });
            let other = Asked { thread, model: "m".to_owned() };
            assert_eq!(
                (window.limit(&other), window.corrected(&other, 10)),
                (Some(80_000), 10),
                "{owner} {id}"
            );
        }
    }
}
