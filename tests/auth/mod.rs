//! Callers: API keys, and tokens with fixed or published keys.

mod jwks;
pub(crate) mod jwt;
mod keys;
