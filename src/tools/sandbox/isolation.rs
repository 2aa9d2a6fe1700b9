//! What a sandbox is: bubblewrap's arguments, and the limits that hold within.
//!
//! A command is not root, has no capabilities and can get none. Run by a server that is not root, it is isolated by a
//! user namespace. A root server needs none to isolate, and in one the command would still be the system's root to the
//! kernel, whose processes are not limited: there the command runs as a user of the workspace's own instead.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{SandboxOptions, workspace::Workspace};

/// Where the workspace is, for a command.
pub(super) const WORKSPACE: &str = "/workspace";
/// What a command is told about its surroundings; nothing of this server's own.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", WORKSPACE),
    ("TMPDIR", WORKSPACE),
    ("LANG", "C.UTF-8"),
    ("SHELL", "/bin/sh"),
    ("USER", "sandbox"),
];
/// Folders of the system beside `/usr`; on most systems links into it.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What programs need of the system's settings. None of it is secret.
const SETTINGS: [&str; 3] = ["/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime"];

/// How commands are isolated here.
#[derive(Debug)]
pub(super) struct Isolation {
    bwrap: PathBuf,
    root: bool,
    /// Whether this version can keep user namespaces from commands.
    disables_namespaces: bool,
}

impl Isolation {
    /// Looks for the programs that are needed.
    pub(super) fn find() -> Result<Self, String> {
        let bwrap = in_path("bwrap").ok_or("there is no `bwrap` in PATH; it is in the package bubblewrap")?;
        let root = is_root();
        let needed = ["/usr/bin/prlimit", "/usr/bin/setpriv"];
        if let Some(missing) = needed[..if root { 2 } else { 1 }].iter().find(|path| !Path::new(path).exists()) {
            return Err(format!("there is no {missing}; it is in the package util-linux"));
        }
        let help = Command::new(&bwrap).arg("--help").env_clear().stdin(Stdio::null()).output();
        let help = help.map_err(|error| format!("{} cannot be started: {error}", bwrap.display()))?;
        let disables_namespaces = String::from_utf8_lossy(&help.stdout).contains("--disable-userns");
        Ok(Self { bwrap, root, disables_namespaces })
    }

    pub(super) fn program(&self) -> &Path {
        &self.bwrap
    }

    /// Whether each workspace has a user of its own.
    pub(super) fn has_own_users(&self) -> bool {
        self.root
    }

    /// The arguments that run a command in a workspace.
    pub(super) fn arguments(&self, workspace: &Workspace, limits: &SandboxOptions, command: &[&str]) -> Vec<OsString> {
        let mut arguments = Arguments::default();
        // Everything of its own but the user: the parent's death is the sandbox's, and its terminal is not.
        arguments.add("--unshare-ipc --unshare-net --unshare-pid --unshare-uts --unshare-cgroup-try");
        arguments.add("--die-with-parent --new-session --hostname sandbox --cap-drop ALL --clearenv");
        if self.root {
            // For the change of the user, which gives them up.
            arguments.add("--cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP");
        } else {
            arguments.add("--unshare-user --uid 1000 --gid 1000");
            if self.disables_namespaces {
                arguments.add("--disable-userns");
            }
        }
        for (name, value) in ENVIRONMENT {
            arguments.all(["--setenv", name, value]);
        }
        arguments.add("--ro-bind /usr /usr");
        for folder in SYSTEM {
            match std::fs::read_link(folder) {
                Ok(target) => arguments.all([OsStr::new("--symlink"), target.as_os_str(), OsStr::new(folder)]),
                Err(_) => arguments.all(["--ro-bind-try", folder, folder]),
            }
        }
        // Made on the way to what is in it, it would be root's alone.
        arguments.add("--perms 0755 --dir /etc");
        for file in SETTINGS {
            arguments.all(["--ro-bind-try", file, file]);
        }
        arguments.add("--proc /proc --dev /dev");
        arguments.all([OsStr::new("--bind"), workspace.path().as_os_str(), OsStr::new(WORKSPACE)]);
        // These two are file systems in memory, which nobody would limit.
        arguments.add("--remount-ro /dev --remount-ro / --");
        if self.root {
            let user = workspace.user();
            arguments.all(["/usr/bin/setpriv".to_owned(), format!("--reuid={user}"), format!("--regid={user}")]);
            arguments.add("--clear-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs");
        }
        arguments.all([
            "/usr/bin/prlimit".to_owned(),
            format!("--nproc={}", limits.processes),
            format!("--as={}", limits.memory),
            format!("--fsize={}", limits.workspace_size),
            // Whatever escapes the clock does not escape this one.
            format!("--cpu={}", limits.timeout.as_secs().saturating_add(1)),
        ]);
        arguments.add("--core=0 --nofile=256 -- /bin/sh -c");
        arguments.all(["cd /workspace && exec \"$@\"", "sh"]);
        arguments.all(command);
        arguments.0
    }
}

/// The folder of the system, as every command sees it, that a path is in.
pub(super) fn seen_in(path: &Path) -> Option<&'static str> {
    // What is not there yet will be where its nearest folder is.
    let real = path.ancestors().find_map(|folder| std::fs::canonicalize(folder).ok())?;
    let mut seen = SYSTEM.into_iter().chain(SETTINGS).chain(["/usr"]);
    seen.find(|folder| real.starts_with(std::fs::canonicalize(folder).unwrap_or_else(|_| folder.into())))
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    /// Arguments that are words.
    fn add(&mut self, words: &str) {
        self.all(words.split(' '));
    }

    fn all<S: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = S>) {
        self.0.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // A relative folder would be another one for every command.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_see_is_known() {
        assert!(seen_in(Path::new("/usr/local/share/agui/workspaces")).is_some());
        assert!(seen_in(Path::new("/lib/agui")).is_some());
        assert_eq!(seen_in(Path::new("/var/lib/agui-server/workspaces")), None);
        assert_eq!(seen_in(Path::new("/usra")), None);
    }
}
