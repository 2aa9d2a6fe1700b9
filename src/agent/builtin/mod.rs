//! The built-in agents without a model. Agents with a model are in [`llm`](crate::llm).

mod echo;
#[cfg(feature = "upstream")]
mod remote;
#[cfg(feature = "config")]
mod replay;
#[cfg(feature = "config")]
pub(crate) mod script;

pub use echo::Echo;
#[cfg(feature = "upstream")]
pub use remote::{Remote, RemoteOptions};
#[cfg(feature = "config")]
pub(crate) use replay::{Replay, ReplayOptions};
#[cfg(feature = "config")]
pub(crate) use script::Script;
