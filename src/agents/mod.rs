//! The built-in agents without a model. Agents with a model are in [`llm`](crate::llm).

mod echo;
#[cfg(feature = "upstream")]
pub mod remote;
#[cfg(feature = "config")]
pub mod script;

pub use echo::Echo;
#[cfg(feature = "upstream")]
pub use remote::{Remote, RemoteError, RemoteOptions};
#[cfg(feature = "config")]
pub use script::{Script, ScriptError};
