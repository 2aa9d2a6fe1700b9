//! The built-in agents without a model. Agents with a model are in [`llm`](crate::llm).

mod echo;
pub mod remote;
pub mod script;

pub use echo::Echo;
pub use remote::{Remote, RemoteError, RemoteOptions};
pub use script::{Script, ScriptError};
