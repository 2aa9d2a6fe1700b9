//! Tools that run commands and access files in a sandbox, in one workspace folder for each conversation.
//!
//! Each call starts a process in its own [bubblewrap](https://github.com/containers/bubblewrap) sandbox: no network, a
//! read-only system, nothing of this server's files and environment. Only the workspace is writable, and it stays for
//! the next call of the conversation. Files are read and written by processes in the sandbox, so a link out of the
//! workspace leads nowhere. Dropping the future of a call kills its processes. Without isolation there are no tools.

mod cgroup;
mod isolation;
mod options;
mod probe;
mod process;
mod procfs;
mod removal;
mod runner;
mod seccomp;
mod tools;
mod usage;
mod walk;
mod workspace;

#[cfg(test)]
pub(crate) use self::options::TOOL_NAMES;
pub(crate) use self::workspace::WorkspaceOwner;
pub use self::{options::SandboxOptions, runner::Sandbox};
