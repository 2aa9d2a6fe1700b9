//! The built-in agents that are no model of this server's.
//!
//! - [`Echo`] repeats what it is told: the least there is to try a front end with.
//! - [`Script`] is played from a file: demos, and front-end work against answers that do not change.
//! - [`Remote`] is another AG-UI endpoint, in whatever language, behind this server.

mod echo;
pub mod remote;
pub mod script;

pub use echo::Echo;
pub use remote::{Remote, RemoteError, RemoteOptions};
pub use script::{Script, ScriptError};
