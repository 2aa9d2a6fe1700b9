//! Options that exist only with a feature of the crate.

use super::ServerError;
#[cfg(feature = "playground")]
use crate::http::playground::PlaygroundOptions;
use crate::observe::metrics::Metrics;
#[cfg(feature = "llm")]
use crate::observe::metrics::Prices;

#[derive(Debug, Default)]
pub(super) struct FeatureOptions {
    #[cfg(feature = "playground")]
    pub(super) playground: PlaygroundOptions,
    #[cfg(feature = "llm")]
    pub(super) prices: Prices,
}

impl FeatureOptions {
    /// Returns new metrics, with the prices of models.
    #[cfg(feature = "llm")]
    pub(super) fn metrics(self) -> Result<Metrics, ServerError> {
        match self.prices.find_invalid() {
            Some(model) => Err(ServerError::Price(model.to_owned())),
            None => Ok(Metrics::new(self.prices)),
        }
    }

    #[cfg(not(feature = "llm"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "with the feature `llm`, it has prices")]
    pub(super) fn metrics(self) -> Result<Metrics, ServerError> {
        Ok(Metrics::default())
    }
}
