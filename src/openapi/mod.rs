//! `GET /openapi.json`: the routes of this server as an OpenAPI 3.1 document.
//!
//! The list of routes decides what is in the document, so it describes what this server serves, with its options. Each
//! method of a route has a description in `operations/`, found by the route's template, and `schemas/` has the bodies. A
//! route without a description, and a description without a route, fail a test; so do events that do not fit their schema.

mod document;
mod operation;
mod operations;
mod refusals;
mod routes;
mod schema;
mod schemas;

pub(crate) use routes::route_set;
