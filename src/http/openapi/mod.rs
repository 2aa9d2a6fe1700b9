//! `GET /openapi.json`: the routes of this server as an OpenAPI 3.1 document.
//!
//! Each handler declares its endpoint with `#[utoipa::path]`, and `routes!` serves it, so the document has what this server
//! serves, with its options. The document adds what the middleware answers. `schemas/` has the bodies. Events that do not
//! fit their schema fail a test.

pub(crate) mod answer;
mod document;
pub(crate) mod refuse;
pub(super) mod routes;
mod schema;
mod schemas;
pub(crate) mod served;
