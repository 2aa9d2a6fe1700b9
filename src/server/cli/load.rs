//! Loads the configuration of a command.

use std::error::Error;

use super::arguments::CommandOptions;
use crate::server::{Server, options::Loaded};

/// Loads the configuration and checks everything but the store. Returns it with what the providers will refuse.
pub(super) fn load(options: CommandOptions) -> Result<(Loaded, Vec<String>), Box<dyn Error>> {
    let loaded = options.sources().load()?;
    let warnings = Server::from_config(&loaded)?.check()?;
    Ok((loaded, warnings))
}
