//! A cgroup (version 2) for each command, which bounds its memory and its processes.
//!
//! The server needs a cgroup of its own in which it may create others: a systemd unit with `Delegate=yes`, or a
//! container with a writable cgroup. The kernel allows controllers only in cgroups without processes, so the server
//! moves itself into a child, [`SERVER_GROUP`].

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use super::super::SandboxOptions;

const SERVER_GROUP: &str = "agui-server";
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The processes of bubblewrap, which the limit counts, too.
const BWRAP_PROCESSES: u64 = 2;
const REMOVAL_ATTEMPTS: u32 = 200;
const REMOVAL_INTERVAL: Duration = Duration::from_millis(10);

/// The cgroup whose children bound commands.
#[derive(Debug)]
pub(super) struct Cgroups {
    parent: PathBuf,
}

/// One value for the whole process, because the server moves itself into a cgroup.
static CGROUPS: OnceLock<Result<Cgroups, String>> = OnceLock::new();

impl Cgroups {
    /// Returns the cgroup of this process, prepared for commands, or the reason why it cannot be
    /// used.
    pub(super) fn for_this_process() -> Result<&'static Self, &'static str> {
        CGROUPS.get_or_init(|| Self::prepare(own_cgroup()?)).as_ref().map_err(String::as_str)
    }

    fn prepare(parent: PathBuf) -> Result<Self, String> {
        let shown = parent.display().to_string();
        let available = fs::read_to_string(parent.join("cgroup.controllers")).unwrap_or_default();
        if let Some(missing) =
            CONTROLLERS.iter().find(|name| !available.split_whitespace().any(|word| word == **name))
        {
            return Err(format!("the cgroup {shown} has no controller `{missing}`"));
        }
        let cgroups = Self { parent };
        cgroups.enable_controllers().map(|()| cgroups).map_err(|error| {
            format!("the cgroup {shown} cannot be used, it must be delegated and have no other process: {error}")
        })
    }

    /// Moves this process into a child, and back if the controllers cannot be enabled.
    fn enable_controllers(&self) -> io::Result<()> {
        let (group, process) = (self.parent.join(SERVER_GROUP), std::process::id().to_string());
        fs::create_dir_all(&group)?;
        fs::write(group.join("cgroup.procs"), &process)?;
        let words = CONTROLLERS.map(|name| format!("+{name}")).join(" ");
        fs::write(self.parent.join("cgroup.subtree_control"), words).inspect_err(|_| {
            let _ = fs::write(self.parent.join("cgroup.procs"), &process);
            let _ = fs::remove_dir(&group);
        })
    }

    /// Creates the cgroup of a command. It has no processes yet.
    pub(super) fn create(&self, options: &SandboxOptions) -> io::Result<CommandCgroup> {
        let path = self.parent.join(format!("agui-command-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir(&path)?;
        let group = CommandCgroup { path };
        group.set("memory.max", options.memory_bytes)?;
        // The kernel may have no swap.
        let _ = group.set("memory.swap.max", 0);
        group.set("memory.oom.group", 1)?;
        group.set("pids.max", options.processes.saturating_add(BWRAP_PROCESSES))?;
        Ok(group)
    }
}

/// The cgroup of one command. Dropping it kills its processes, and removes it.
#[derive(Debug)]
pub(super) struct CommandCgroup {
    pub(super) path: PathBuf,
}

impl CommandCgroup {
    /// Returns whether the kernel ended processes for want of memory.
    pub(super) fn is_out_of_memory(&self) -> bool {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count != "0"))
    }

    fn set(&self, name: &str, value: u64) -> io::Result<()> {
        fs::write(self.path.join(name), value.to_string())
    }
}

impl Drop for CommandCgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        if fs::remove_dir(&self.path).is_ok() {
            return;
        }
        // Killed processes leave their cgroup when they have ended.
        let path = std::mem::take(&mut self.path);
        let remove = move || {
            for _ in 0..REMOVAL_ATTEMPTS {
                std::thread::sleep(REMOVAL_INTERVAL);
                if fs::remove_dir(&path).is_ok() {
                    return;
                }
            }
            tracing::warn!(path = %path.display(), "the cgroup of a command could not be removed");
        };
        // `thread::spawn` would panic if the system has no thread left.
        if let Err(error) = std::thread::Builder::new().spawn(remove) {
            tracing::warn!(%error, "the cgroup of a command stays: no thread could be started to remove it");
        }
    }
}

/// Returns the folder of the cgroup in which this process is.
fn own_cgroup() -> Result<PathBuf, String> {
    let read = |path: &str| {
        fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))
    };
    let groups = read("/proc/self/cgroup")?;
    let mounts = read("/proc/self/mountinfo")?;
    folder_of(&groups, &mounts)
        .ok_or_else(|| "there is no cgroup file system of version 2".to_owned())
}

fn folder_of(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        kind.starts_with("cgroup2 ").then_some((place.next()?, place.next()?))
    });
    let (root, folder) = mount?;
    let inner = Path::new(group).strip_prefix(root).ok()?;
    let folder = Path::new(folder).join(inner);
    // An earlier server of this unit may have left this child.
    Some(if folder.ends_with(SERVER_GROUP) { folder.parent()?.to_owned() } else { folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "24 30 0:22 / /proc rw,nosuid - proc proc rw\n\
                          31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_cgroup_of_the_process_is_found() {
        let folder =
            |groups, mounts| folder_of(groups, mounts).map(|folder| folder.display().to_string());
        let unit = "0::/system.slice/agui.service\n";
        assert_eq!(folder(unit, MOUNTS).unwrap(), "/sys/fs/cgroup/system.slice/agui.service");
        let moved = "0::/system.slice/agui.service/agui-server\n";
        assert_eq!(folder(moved, MOUNTS).unwrap(), "/sys/fs/cgroup/system.slice/agui.service");
        let container = MOUNTS.replace("0:27 /", "0:27 /system.slice");
        assert_eq!(folder(unit, &container).unwrap(), "/sys/fs/cgroup/agui.service");
        assert_eq!(folder("4:memory:/\n", MOUNTS), None);
        assert_eq!(folder(unit, "24 30 0:22 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn a_cgroup_without_controllers_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        let error = Cgroups::prepare(folder.path().to_owned()).unwrap_err();
        assert!(error.ends_with("has no controller `pids`"), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
