//! The built-in agents without a model.
//!
//! - [`Echo`] repeats the newest user message: the simplest agent to try a front end with.
//! - [`Script`] plays a file: for demos, and for front ends that need the same events every time.
//! - [`Remote`] forwards runs to another AG-UI endpoint, in whatever language.
//!
//! Agents with a model are in [`llm`](crate::llm).

mod echo;
pub mod remote;
pub mod script;

pub use echo::Echo;
pub use remote::{Remote, RemoteError, RemoteOptions};
pub use script::{Script, ScriptError};
