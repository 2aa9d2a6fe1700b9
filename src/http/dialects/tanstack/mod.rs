//! Additions to AG-UI for TanStack AI's pages: threads in its own format, joining of runs, and more
//! events.

mod encoder;
pub(crate) mod join;
mod ui_message;

pub(crate) use encoder::TanStackEncoder;
