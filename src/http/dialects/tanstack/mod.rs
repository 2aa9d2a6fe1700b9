//! What TanStack AI's pages need beside AG-UI: threads as they hold them, joining of runs, and additions to the stream.

mod encoder;
pub(crate) mod join;
mod ui_message;

pub(crate) use encoder::TanStackEncoder;
