//! `agui-server chat`, with the real command: in a pipe, and in a terminal.

mod agents;
mod pipe;
#[cfg(target_os = "linux")]
pub(super) mod terminal;

use crate::support::{running as support, server};
