//! The built-in agents without a model. Agents with a model are in `agui-llm`.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so each
// remaining one says why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod echo;
#[cfg(feature = "upstream")]
mod remote;
#[cfg(feature = "config")]
mod replay;
#[cfg(feature = "config")]
#[doc(hidden)]
pub mod script;

use agui_protocol::{AgentCapabilities, Event, capabilities::IdentityCapabilities};

pub use echo::Echo;
#[cfg(feature = "upstream")]
pub use remote::{Remote, RemoteOptions};

/// The source of the event at which the response to a run breaks off.
const CUT_SOURCE: &str = "agui-server.cut";

/// Returns whether the response to a run breaks off at this event, as if the connection was lost.
#[doc(hidden)]
pub fn cuts_connection(event: &Event) -> bool {
    matches!(event, Event::Raw(raw) if raw.source.as_deref() == Some(CUT_SOURCE))
}

/// Returns the capabilities of an agent that declares only its identity.
fn identity(name: &str, description: &str) -> AgentCapabilities {
    let identity = IdentityCapabilities {
        name: Some(name.to_owned()),
        r#type: Some("agui-server".to_owned()),
        description: Some(description.to_owned()),
        ..IdentityCapabilities::default()
    };
    AgentCapabilities { identity: Some(identity), ..AgentCapabilities::default() }
}

#[doc(hidden)]
pub mod host;
