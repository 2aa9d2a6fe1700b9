//! Agents with a model, and the clients of the providers' APIs, against a fake provider.

mod clouds;
mod known_models;
mod media;
mod misbehaving;
pub(crate) mod models;
mod owners;
mod parameters;
mod pictures;
mod playback;
pub(crate) mod providers;
mod refusals;

/// The provider's key. It has no form of a key, so only its exact text can be found and removed.
pub(crate) const KEY: &str = "plainwordsfortests";
