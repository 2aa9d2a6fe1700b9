//! A caller's threads: list, read, change, delete, and cancel their runs. One file for each kind of request.
//!
//! Another principal's thread does not exist for the caller, in all handlers: 404 `unknown_thread`.

mod edit;
mod events;
mod feedback;
mod fork;
mod list;
mod messages;
pub(crate) mod pages;
mod recording;
mod runs;
mod transfer;
mod view;

use utoipa_axum::{router::OpenApiRouter, routes};

use super::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_threads, edit::delete_threads))
        .routes(routes!(events::follow_threads))
        .routes(routes!(transfer::import_thread))
        .routes(routes!(view::read_thread, edit::edit_thread, edit::delete_thread))
        .routes(routes!(messages::list_messages))
        .routes(routes!(feedback::give_feedback))
        .routes(routes!(fork::fork_thread))
        .routes(routes!(transfer::export_thread))
        .routes(routes!(recording::read_recording))
        .routes(routes!(runs::read_run))
        .routes(routes!(runs::cancel_run))
}
