//! Rules for the sources that the compiler does not check.

#![allow(clippy::unwrap_used, missing_docs)]

mod bounds;
mod client_names;
mod files;
mod functions;
mod imports;
mod names;
mod promises;
mod public_items;
mod resolve;
mod states;
mod syntax;
mod visibility;
mod words;
mod workspace;
