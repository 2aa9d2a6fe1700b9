//! The folders that commands work in: one for each conversation of each principal.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::{agent::Principal, tools::ToolContext};

/// The first of the users that commands run as, when this server runs as root. Nobody else uses these: systemd's
/// list of ranges (UIDS-GIDS) has them as free.
const FIRST_USER: u32 = 0x7000_0000;

/// Where workspaces are.
#[derive(Debug)]
pub(super) struct Workspaces {
    folder: PathBuf,
}

/// A folder to work in.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    user: u32,
}

impl Workspaces {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { folder: std::path::absolute(folder)? })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The workspace of a conversation. It is made when there is none, as its own user's if there are such.
    pub(super) async fn of(&self, cx: &ToolContext, own_user: bool) -> io::Result<Workspace> {
        let workspace = self.named(&name(cx));
        let made = tokio::task::spawn_blocking(move || workspace.make(own_user).map(|()| workspace));
        made.await.map_err(io::Error::other)?
    }

    fn named(&self, name: &str) -> Workspace {
        let path = self.folder.join(name);
        Workspace { user: user(&path), path }
    }
}

impl Workspace {
    /// A folder for a moment, below the one for temporary files.
    pub(super) fn temporary(own_user: bool) -> io::Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let path = std::env::temp_dir().join(format!("agui-sandbox-{name}"));
        let workspace = Self { user: user(&path), path };
        workspace.make(own_user)?;
        Ok(workspace)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The user whose the folder is, when this server runs as root.
    pub(super) fn user(&self) -> u32 {
        self.user
    }

    fn make(&self, own_user: bool) -> io::Result<()> {
        make_folder(&self.path)?;
        if own_user { give(&self.path, self.user) } else { Ok(()) }
    }

    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, "a temporary workspace could not be removed");
        }
    }
}

/// A name that says nothing, and that no two conversations share: the ids are their clients' to choose.
fn name(cx: &ToolContext) -> String {
    let mut hash = Sha256::new();
    let owner = cx.principal().map_or("", Principal::id);
    hash.update(owner.len().to_le_bytes());
    hash.update([u8::from(cx.principal().is_some())]);
    hash.update(owner);
    hash.update(cx.thread_id().as_str());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One of 16 million, by the whole path: the kernel counts processes by user, and another server on this machine may
/// know a conversation of the same name.
fn user(path: &Path) -> u32 {
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hash.iter().take(3).fold(0, |number, byte| number << 8 | u32::from(*byte)) + FIRST_USER
}

#[cfg(unix)]
fn make_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(unix)]
fn give(path: &Path, user: u32) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(user), Some(user))
}

#[cfg(not(unix))]
fn give(_: &Path, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::agent::{RunContext, RunIdentity};

    #[test]
    fn each_conversation_of_each_principal_has_its_own() {
        let of = |principal: Option<&str>, thread: &str| {
            let principal = principal.map(|name| Principal::new("key", name));
            let identity = RunIdentity { thread_id: thread.into(), run_id: "r".into(), agent: "a".into(), principal };
            name(&ToolContext::new(RunContext::new(identity), Value::Null, "c", "t"))
        };
        let all = [
            of(None, "a"),
            of(None, "b"),
            of(Some(""), "a"),
            of(Some("a"), ""),
            of(Some("a"), "b"),
            of(Some("ab"), ""),
            of(None, "../../etc"),
        ];
        for (at, name) in all.iter().enumerate() {
            assert!(name.len() == 64 && name.chars().all(|c| c.is_ascii_hexdigit()));
            assert!(!all[..at].contains(name));
        }
        let users = ["/a/1", "/b/1", "/a/2"].map(|path| user(Path::new(path)));
        assert!(users.iter().all(|user| (FIRST_USER..FIRST_USER + (1 << 24)).contains(user)));
        assert!(users[0] != users[1] && users[0] != users[2]);
    }
}
