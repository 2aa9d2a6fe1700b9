//! The built-in agents without a model. Agents with a model are in [`llm`](crate::llm).

mod echo;
#[cfg(feature = "upstream")]
mod remote;
mod replay;
#[cfg(feature = "config")]
pub mod script;

pub use echo::Echo;
#[cfg(feature = "upstream")]
pub use remote::{Remote, RemoteError, RemoteOptions};
pub use replay::{Replay, ReplayError, ReplayFault, ReplayOptions};
#[cfg(feature = "config")]
pub use script::{Script, ScriptError};
