//! Tools that run commands and access files in a sandbox, in one workspace folder for each conversation.
//!
//! Each call starts a process in its own [bubblewrap](https://github.com/containers/bubblewrap)
//! sandbox: without network, with a read-only system, and without this server's files and
//! environment. Only the workspace is writable, and it stays for the next call of the conversation.
//! Files are read and written by processes in the sandbox, so a link out of the workspace leads
//! nowhere. Dropping the future of a call kills its processes. Without isolation there are no
//! tools.

// `unwrap_used` is in the root's Cargo.toml. A panic would end a run or a request, so each
// remaining one has a reason why input cannot reach it.
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic, clippy::unreachable))]

mod descriptors;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "unsupported.rs"]
mod linux;
mod options;

use std::{fmt, io};

use serde::{Deserialize, Serialize};

pub use self::{linux::Sandbox, options::SandboxOptions};
use agui_protocol::ThreadId;

/// The conversation of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceOwner {
    /// The id of the principal; `None` on a server without authentication.
    pub principal: Option<String>,
    /// The thread's id.
    pub thread: ThreadId,
}

fn unavailable(problem: impl fmt::Display) -> io::Error {
    io::Error::other(format!(
        "commands cannot be isolated here, so the tool group \"sandbox\" is not available: {problem}"
    ))
}

#[doc(hidden)]
pub mod host;
