//! The built-in agents that need no model.
//!
//! - [`Echo`] repeats what it is told: the least there is to try a front end with.
//! - [`Script`] is played from a file: demos, and front-end work against answers that do not change.

mod echo;
pub mod script;

pub use echo::Echo;
pub use script::{Script, ScriptError};
