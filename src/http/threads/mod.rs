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

use super::state::App;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list, edit::delete_all))
        .routes(routes!(events::events))
        .routes(routes!(transfer::import))
        .routes(routes!(view::read, edit::edit, edit::delete))
        .routes(routes!(messages::messages))
        .routes(routes!(feedback::give_feedback))
        .routes(routes!(fork::fork))
        .routes(routes!(transfer::export))
        .routes(routes!(recording::recording))
        .routes(routes!(runs::cancel))
}
