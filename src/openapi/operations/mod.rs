//! The description of each method of each route, in a file for each group of routes.

mod agents;
mod copilotkit;
mod logs;
mod named_events;
mod playground;
mod runs;
mod server;
mod threads;

use super::operation::Description;

/// Returns the description of a method of the route with this template.
pub(super) fn describe(method: &str, template: &str) -> Option<Description> {
    let groups = [
        agents::describe,
        copilotkit::describe,
        logs::describe,
        named_events::describe,
        playground::describe,
        runs::describe,
        server::describe,
        threads::describe,
    ];
    groups.iter().find_map(|describe| describe(method, template))
}
