//! Workspaces: one folder for each conversation of each principal.
//!
//! Beside the folder `HASH` lies `HASH.json`, which names the conversation, so that a workspace can
//! be removed when its thread is deleted.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs, io,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, lchown},
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use super::{super::WorkspaceOwner, removal::remove_folder};
use agui_base::{private_file::create_private_folder, text::hex};

/// The first of 2^24 user ids that commands run as if this server is root. No system uses them: systemd's
/// `UIDS-GIDS.md` lists the range as unused.
const FIRST_USER_ID: u32 = 0x7000_0000;
/// The prefix of folders that are being removed.
const TRASH_PREFIX: &str = ".removed-";
/// The time that a removal waits for commands that are being killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);
const KILL_POLL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct Workspaces {
    pub(super) folder: PathBuf,
    /// The workspaces in which commands run, by name.
    in_use: Mutex<HashMap<String, Weak<()>>>,
}

#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) path: PathBuf,
    pub(super) user_id: u32,
    _use: Arc<()>,
}

/// The user that commands run as in a workspace, and to which its folder belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkspaceUser {
    /// The user of this server.
    Server,
    /// A user of the workspace's own.
    Own,
}

impl Workspaces {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        Ok(Self { folder: std::path::absolute(folder)?, in_use: Mutex::default() })
    }

    /// Creates the folder if it does not exist.
    pub(super) fn open(
        &self,
        owner: &WorkspaceOwner,
        user: WorkspaceUser,
    ) -> io::Result<Workspace> {
        let name = folder_name(owner);
        let path = self.folder.join(&name);
        let workspace = {
            // The folder is created under the lock, so that no removal can intervene.
            let mut in_use = self.in_use.lock();
            in_use.retain(|_, used| used.strong_count() > 0);
            let used = in_use.get(&name).and_then(Weak::upgrade).unwrap_or_default();
            in_use.insert(name, Arc::downgrade(&used));
            create_private_folder(&self.folder)?;
            write_record(&path.with_extension("json"), owner)?;
            create_private_folder(&path)?;
            Workspace { user_id: user_id(&path), path, _use: used }
        };
        workspace.prepare(user)?;
        Ok(workspace)
    }

    /// Lists the conversations that have workspaces. Removes folders that earlier processes left
    /// half removed or without a record.
    pub(super) fn owners(&self) -> io::Result<Vec<WorkspaceOwner>> {
        let mut owners = Vec::new();
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(owners),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            let is_record = path.extension().is_some_and(|extension| extension == "json");
            if !is_record && !path.is_dir() {
                continue;
            }
            match read_record(&path.with_extension("json")) {
                Ok(Some(owner)) => owners.extend(is_record.then_some(owner)),
                Ok(None) => {
                    let folder = if is_record { path.with_extension("") } else { path };
                    log_failure(self.remove_ownerless(&folder));
                }
                Err(error) => {
                    tracing::warn!(%error, path = %path.display(), "the record of a workspace could not be read; the workspace stays");
                }
            }
        }
        Ok(owners)
    }

    /// Removes a folder without a valid record, and the invalid record, unless it is a workspace in use.
    fn remove_ownerless(&self, path: &Path) -> io::Result<()> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let trash = {
            let in_use = self.in_use.lock();
            let is_used = in_use.get(name).is_some_and(|used| used.strong_count() > 0);
            let record = path.with_extension("json");
            // Another call may have opened the workspace.
            if is_used || read_record(&record)?.is_some() {
                return Ok(());
            }
            ignore_absent(fs::remove_file(record))?;
            let trash = self.trash();
            ignore_absent(fs::rename(path, &trash))?;
            trash
        };
        ignore_absent(remove_folder(&trash))
    }

    fn trash(&self) -> PathBuf {
        self.folder.join(format!("{TRASH_PREFIX}{}", uuid::Uuid::new_v4().simple()))
    }

    /// Removes a workspace. Its folder is renamed at once; then this waits until its commands have
    /// ended.
    pub(super) fn remove(&self, owner: &WorkspaceOwner) -> io::Result<()> {
        let name = folder_name(owner);
        let path = self.folder.join(&name);
        let trash = self.trash();
        let used = {
            let mut in_use = self.in_use.lock();
            ignore_absent(fs::rename(&path, &trash))?;
            ignore_absent(fs::remove_file(path.with_extension("json")))?;
            in_use.remove(&name).unwrap_or_default()
        };
        let deadline = std::time::Instant::now() + KILL_TIMEOUT;
        while used.strong_count() > 0 && std::time::Instant::now() < deadline {
            std::thread::sleep(KILL_POLL);
        }
        ignore_absent(remove_folder(&trash))
    }
}

impl Workspace {
    pub(super) fn temporary(user: WorkspaceUser) -> io::Result<Self> {
        let name = uuid::Uuid::new_v4().simple().to_string();
        let path = std::env::temp_dir().join(format!("agui-sandbox-{name}"));
        create_private_folder(&path)?;
        let workspace = Self { user_id: user_id(&path), path, _use: Arc::default() };
        workspace.prepare(user)?;
        Ok(workspace)
    }

    fn prepare(&self, user: WorkspaceUser) -> io::Result<()> {
        // The last command can have taken the permissions away.
        fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700))?;
        match user {
            WorkspaceUser::Server => Ok(()),
            WorkspaceUser::Own => lchown(&self.path, Some(self.user_id), Some(self.user_id)),
        }
    }

    pub(super) fn remove(&self) {
        log_failure(remove_folder(&self.path));
    }
}

fn log_failure(removed: io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(%error, "a workspace could not be removed");
    }
}

fn ignore_absent(result: io::Result<()>) -> io::Result<()> {
    result
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Returns `None` if the record is absent or invalid. After other errors, such as too many open
/// files, the record may be valid.
fn read_record(path: &Path) -> io::Result<Option<WorkspaceOwner>> {
    match fs::read(path) {
        Ok(record) => Ok(serde_json::from_slice(&record).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the record before the folder exists, so that no folder is without one, also after a crash.
fn write_record(path: &Path, owner: &WorkspaceOwner) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let unfinished = path.with_extension("new");
    let mut file = fs::File::create(&unfinished)?;
    file.write_all(&serde_json::to_vec(owner)?)?;
    file.sync_all()?;
    fs::rename(unfinished, path)
}

/// Returns a hash of principal and thread. Clients choose thread ids, so an id itself could be a path such as `../x`.
fn folder_name(owner: &WorkspaceOwner) -> String {
    let mut hash = Sha256::new();
    let principal = owner.principal.as_deref().unwrap_or_default();
    hash.update(principal.len().to_le_bytes());
    hash.update([u8::from(owner.principal.is_some())]);
    hash.update(principal);
    hash.update(owner.thread.as_str());
    hex(&hash.finalize())
}

/// Returns the user id of a workspace. It depends on the whole path, because the kernel limits processes by user and
/// another server on the same machine can have a workspace with the same name.
fn user_id(path: &Path) -> u32 {
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    hash.iter().take(3).fold(0, |number, byte| number << 8 | u32::from(*byte)) + FIRST_USER_ID
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_conversation_of_each_principal_has_its_own_workspace() {
        let of = |principal: Option<&str>, thread: &str| {
            folder_name(&WorkspaceOwner {
                principal: principal.map(str::to_owned),
                thread: thread.into(),
            })
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

    #[test]
    fn a_removed_workspace_is_empty_when_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::new(&folder.path().join("workspaces")).unwrap();
        assert_eq!(workspaces.owners().unwrap(), []);
        let owner = |thread: &str| WorkspaceOwner {
            principal: Some("key:web".to_owned()),
            thread: thread.into(),
        };
        for thread in ["a", "b"] {
            let workspace = workspaces.open(&owner(thread), WorkspaceUser::Server).unwrap();
            fs::write(workspace.path.join("file"), thread).unwrap();
        }
        workspaces.remove(&owner("a")).unwrap();
        assert_eq!(workspaces.owners().unwrap(), [owner("b")]);
        let workspace = workspaces.open(&owner("a"), WorkspaceUser::Server).unwrap();
        assert_eq!(fs::read_dir(&workspace.path).unwrap().count(), 0);
        assert!(
            workspaces.open(&owner("b"), WorkspaceUser::Server).unwrap().path.join("file").exists()
        );
        workspaces.remove(&owner("c")).unwrap();
    }

    #[test]
    fn what_a_crash_left_behind_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::new(folder.path()).unwrap();
        for name in [".removed-1", "without-record"] {
            fs::create_dir_all(folder.path().join(name).join("a/b")).unwrap();
        }
        assert_eq!(workspaces.owners().unwrap(), []);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_workspace_whose_record_cannot_be_read_stays() {
        let folder = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::new(folder.path()).unwrap();
        let workspace = workspaces
            .open(&WorkspaceOwner { principal: None, thread: "a".into() }, WorkspaceUser::Server)
            .unwrap();
        let path = workspace.path.to_owned();
        drop(workspace);
        // Root cannot read a link to itself either.
        let record = path.with_extension("json");
        fs::remove_file(&record).unwrap();
        std::os::unix::fs::symlink(&record, &record).unwrap();
        assert_eq!(workspaces.owners().unwrap(), []);
        assert!(path.is_dir() && record.is_symlink());
    }

    #[test]
    fn an_invalid_record_is_removed_with_its_folder_once_no_command_runs_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::new(folder.path()).unwrap();
        let owner = WorkspaceOwner { principal: None, thread: "a".into() };
        let workspace = workspaces.open(&owner, WorkspaceUser::Server).unwrap();
        let path = workspace.path.to_owned();
        fs::write(path.with_extension("json"), "{").unwrap();
        assert_eq!(workspaces.owners().unwrap(), []);
        assert!(path.is_dir(), "a command runs in it");
        drop(workspace);
        assert_eq!(workspaces.owners().unwrap(), []);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(workspaces.open(&owner, WorkspaceUser::Server).unwrap());
        assert_eq!(workspaces.owners().unwrap(), [owner]);
    }
}
