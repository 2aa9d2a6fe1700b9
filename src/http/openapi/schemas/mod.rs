//! The components of the document: the schemas of bodies and events, by name.

mod agents;
mod content;
mod copilotkit;
mod events;
mod input;
mod messages;
mod named_events;
mod server;
mod threads;
mod transfer;

use super::schema::Named;

/// Returns all components, those of routes that the server does not serve as well.
pub(super) fn components() -> impl Iterator<Item = Named> {
    let families = [
        agents::schemas(),
        content::schemas(),
        copilotkit::schemas(),
        events::schemas(),
        input::schemas(),
        messages::schemas(),
        named_events::schemas(),
        server::schemas(),
        threads::schemas(),
        transfer::schemas(),
    ];
    families.into_iter().flatten()
}
