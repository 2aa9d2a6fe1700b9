//! Keeps requests within the context window of a model.
//!
//! [`FittedModel`] wraps a model. It estimates each request, and refuses or shortens one that is too
//! long. With the policy `summarise`, the agent replaces old messages by a summary first (`summarise`), which becomes a
//! message of the branch ([`history::summary`](super::history)); what then is still too long is left out.
//! `media_fit` keeps media within what the provider takes. What a provider refuses is asked again by `repair`.

pub(crate) mod estimate;
mod fitted;
#[cfg(feature = "image")]
pub(super) mod image_memory;
#[cfg(feature = "image")]
pub(super) mod image_scale;
#[cfg(not(feature = "image"))]
#[path = "no_image_scale.rs"]
mod image_scale;
pub(crate) mod media_fit;
mod model_window;
mod options;
mod summarise;
pub(crate) mod trim;

pub use self::options::{WindowOptions, WindowPolicy};
pub(crate) use self::{
    fitted::FittedModel,
    model_window::{Asked, ModelWindow},
};
