//! What TanStack AI's pages need beside AG-UI: threads as they hold them, and joining of runs.

pub(crate) mod join;
mod ui_message;
