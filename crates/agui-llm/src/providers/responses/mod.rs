//! OpenAI's Responses API, which OpenAI's current models need for tools and reasoning.
//!
//! Requests are stateless: each one contains the whole conversation, and the service stores nothing (`store: false`).
//! The shapes are those of <https://developers.openai.com/api/reference/resources/responses/methods/create>.

pub(crate) mod decoder;
mod input;
mod items;
pub(crate) mod request;
