//! Workspaces: one folder for each conversation of each principal.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::{agent::Principal, tools::ToolContext};

/// The first of 2^24 user ids that commands run as if this server is root. No system uses them: systemd's
/// `UIDS-GIDS.md` lists the range as unused.
const FIRST_USER_ID: u32 = 0x7000_0000;

#[derive(Debug)]
pub(super) struct Workspaces {
    folder: PathBuf,
}

#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    user_id: u32,
}

impl Workspaces {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { folder: std::path::absolute(folder)? })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the folder if it does not exist. With `own_user` it belongs to the workspace's user.
    pub(super) async fn open(&self, cx: &ToolContext, own_user: bool) -> io::Result<Workspace> {
        let workspace = Workspace::at(self.folder.join(folder_name(cx)));
        let created = tokio::task::spawn_blocking(move || workspace.create(own_user).map(|()| workspace));
        created.await.map_err(io::Error::other)?
    }
}

impl Workspace {
    pub(super) fn temporary(own_user: bool) -> io::Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let path = std::env::temp_dir().join(format!("agui-sandbox-{name}"));
        let workspace = Self::at(path);
        workspace.create(own_user)?;
        Ok(workspace)
    }

    fn at(path: PathBuf) -> Self {
        Self { user_id: user_id(&path), path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn user_id(&self) -> u32 {
        self.user_id
    }

    fn create(&self, own_user: bool) -> io::Result<()> {
        create_private_folder(&self.path)?;
        if own_user { set_owner(&self.path, self.user_id) } else { Ok(()) }
    }

    pub(super) fn remove(&self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(%error, "a temporary workspace could not be removed");
        }
    }
}

/// Returns a hash of principal and thread. Clients choose thread ids, so an id itself could be a path such as `../x`.
fn folder_name(cx: &ToolContext) -> String {
    let mut hash = Sha256::new();
    let owner = cx.principal().map_or("", Principal::id);
    hash.update(owner.len().to_le_bytes());
    hash.update([u8::from(cx.principal().is_some())]);
    hash.update(owner);
    hash.update(cx.thread_id().as_str());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the user id of a workspace. It depends on the whole path, because the kernel limits processes by user and
/// another server on the same machine can have a workspace with the same name.
fn user_id(path: &Path) -> u32 {
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hash.iter().take(3).fold(0, |number, byte| number << 8 | u32::from(*byte)) + FIRST_USER_ID
}

#[cfg(unix)]
fn create_private_folder(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(unix)]
fn set_owner(path: &Path, user: u32) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(user), Some(user))
}

#[cfg(not(unix))]
fn set_owner(_: &Path, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::agent::{RunContext, RunIdentity};

    #[test]
    fn each_conversation_of_each_principal_has_its_own_workspace() {
        let of = |principal: Option<&str>, thread: &str| {
            let principal = principal.map(|name| Principal::new("key", name));
            let identity = RunIdentity { thread_id: thread.into(), run_id: "r".into(), agent: "a".into(), principal };
            folder_name(&ToolContext::new(RunContext::new(identity), Value::Null, "c", "t"))
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
        let users = ["/a/1", "/b/1", "/a/2"].map(|path| user_id(Path::new(path)));
        assert!(users.iter().all(|user| (FIRST_USER_ID..FIRST_USER_ID + (1 << 24)).contains(user)));
        assert!(users[0] != users[1] && users[0] != users[2]);
    }
}
