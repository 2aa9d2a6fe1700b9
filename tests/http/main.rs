//! The server over real sockets, with well-behaved and hostile clients.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod auth;
#[path = "../corpus/catalogue.rs"]
mod catalogue;
mod cors;
mod errors;
mod foreign_pages;
mod index;
mod jwks;
mod jwt;
mod limits;
mod openapi;
mod playground;
mod process;
mod quota;
#[path = "../support/server.rs"]
mod server;
mod stream;
#[path = "../support/running.rs"]
mod support;
#[path = "../support/tokens.rs"]
mod tokens;
