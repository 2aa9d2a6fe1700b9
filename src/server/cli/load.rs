//! Loads the configuration of a command.

use std::error::Error;

use super::arguments::CommandOptions;
use crate::{
    observe::telemetry::logs,
    server::{Server, options::Loaded},
};

/// Loads the configuration and checks everything but the store. Returns it with what the providers will refuse.
pub(super) fn load(options: CommandOptions) -> Result<(Loaded, Vec<String>), Box<dyn Error>> {
    let loaded = options.sources().load()?;
    logs::check(&loaded.config.log.level)
        .map_err(|error| loaded.origin.error(&["log", "level"], &error.to_string()))?;
    let warnings = Server::from_config(&loaded)?.check()?;
    Ok((loaded, warnings))
}
