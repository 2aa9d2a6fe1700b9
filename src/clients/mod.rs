//! The clients, a folder for each family: how it is recognised, what it cannot read, its encoding,
//! and its routes. What other code needs of them is behind [`Client`].

pub(crate) mod ai_sdk;
pub(crate) mod copilotkit;
pub mod named_events;
mod old_sdks;
pub(crate) mod openai;
pub(crate) mod runs;
pub(crate) mod tanstack;

use std::sync::Arc;

use crate::{
    auth::ApiKey,
    http::{AgentPath, HttpOptions, RouteSet, client::Clients, client_options::SupportedClients},
};
pub(crate) use copilotkit::{Speech, Transcribe, TranscriptionError};

/// Returns the clients that can send any request. The first one that recognises a request has it.
pub(crate) fn known(options: &SupportedClients) -> Clients {
    Clients(vec![
        Box::new(tanstack::TanStack),
        Box::new(copilotkit::CopilotKit),
        Box::new(old_sdks::OldSdk { oldest: options.oldest }),
    ])
}

/// Returns the routes of single clients, and those of agents' own paths.
pub(crate) fn route_sets(
    options: &HttpOptions,
    paths: &[AgentPath],
    keys: &[ApiKey],
    transcription: Option<Arc<dyn Transcribe>>,
) -> Vec<RouteSet> {
    let mut sets = copilotkit::route_sets(&options.copilotkit, keys, transcription);
    sets.extend(ai_sdk::route_set(&options.ai_sdk));
    sets.extend(named_events::route_set(&options.named_events));
    sets.extend(openai::route_set(&options.openai));
    sets.extend(paths.iter().cloned().map(runs::own_path));
    sets
}

/// Returns the path of the route that makes text of speech.
pub(crate) fn transcribe_path(options: &HttpOptions) -> Option<String> {
    let copilotkit = &options.copilotkit;
    copilotkit.enabled.then(|| format!("{}/transcribe", copilotkit.prefix))
}

/// Checks the paths of the routes of single clients.
///
/// # Errors
/// Returns the option with a wrong path, the path, and the rule that it breaks.
pub(crate) fn check_paths(
    options: &HttpOptions,
) -> Result<(), (&'static str, String, &'static str)> {
    let HttpOptions { copilotkit, ai_sdk, .. } = options;
    match copilotkit.check_prefix() {
        Err(problem) if copilotkit.enabled => {
            return Err(("copilotkit.prefix", copilotkit.prefix.clone(), problem));
        }
        _ => {}
    }
    match ai_sdk.check_prefix(copilotkit.enabled.then_some(&copilotkit.prefix)) {
        Err(problem) if ai_sdk.enabled => Err(("ai_sdk.prefix", ai_sdk.prefix.clone(), problem)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
