//! Additions to AG-UI for TanStack AI's pages: threads in its own format, joining of runs, and more
//! events.

mod client;
mod encoder;
pub(crate) mod join;
mod ui_message;

pub(crate) use client::TanStack;
#[cfg(test)]
pub(crate) use encoder::TanStackEncoder;
