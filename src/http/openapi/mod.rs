//! `GET /openapi.json`: the routes of this server as an OpenAPI 3.1 document.
//!
//! Each handler declares its endpoint with `#[utoipa::path]`, and `routes!` serves it, so the
//! document has what this server serves, with its options. The schemas of bodies and events are
//! derived from the types that serde reads and writes; `plain.rs` makes them easier to read. The
//! document adds the responses of the middleware. Events that do not fit their schema fail a test.

pub(crate) mod document;
mod plain;
pub(crate) mod refuse;
pub(crate) use refuse::ErrorCodeSchema;
pub(crate) mod response;
pub(super) mod routes;
pub(crate) mod schema;
pub(crate) mod served;
mod shared_schemas;
