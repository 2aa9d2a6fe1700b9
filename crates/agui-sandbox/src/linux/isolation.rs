//! The isolation of a command: bubblewrap's arguments, and the limits of the kernel.
//!
//! A command is not root, has no capabilities and cannot get any. A seccomp filter blocks system
//! calls that create namespaces and mounts, and system calls that take unbounded memory.
//!
//! If this server is not root, a user namespace isolates the command. If it is root, a user namespace would map the
//! command to the system's root, to which `--nproc` does not apply; so each workspace has a user of its own instead.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{
    super::SandboxOptions,
    cgroup::{Cgroups, CommandCgroup},
    seccomp::{MemoryBound, NamelessFile},
    workspace::{Workspace, WorkspaceUser},
};

/// Runs outside of the sandbox: joins the cgroup `$1`, if there is one, opens the filter `$2` as descriptor 3 and
/// bubblewrap's options `$3` as descriptor 4, and becomes bubblewrap.
const LAUNCHER: &str = r#"if [ -n "$1" ]; then echo $$ > "$1/cgroup.procs" || exit; fi; exec 3< "$2" 4< "$3"; shift 3; exec "$@""#;

pub(super) const WORKSPACE: &str = "/workspace";
const ENVIRONMENT: [(&str, &str); 6] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("HOME", WORKSPACE),
    ("TMPDIR", WORKSPACE),
    ("LANG", "C.UTF-8"),
    ("SHELL", "/bin/sh"),
    ("USER", "sandbox"),
];
/// System folders beside `/usr`. On most systems they are links into it.
const SYSTEM_FOLDERS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// The files of `/etc` that programs need. None of them is secret.
const ETC_FILES: [&str; 3] = ["/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime"];

#[derive(Debug)]
pub(super) struct Isolation {
    bwrap: PathBuf,
    is_root: bool,
    can_disable_userns: bool,
    filter: NamelessFile,
    /// The cgroups that bound memory and processes, or the reason for their absence.
    pub(super) cgroups: Result<&'static Cgroups, &'static str>,
}

/// One command to isolate.
pub(super) struct IsolatedCommand<'a> {
    pub(super) words: &'a [&'a str],
    pub(super) workspace: &'a Workspace,
    pub(super) cgroup: Option<&'a CommandCgroup>,
    /// The size limit of a file, in bytes.
    pub(super) file_bytes: u64,
}

impl Isolation {
    pub(super) fn find() -> Result<Self, String> {
        let bwrap = in_path("bwrap")
            .ok_or("there is no `bwrap` in PATH: install the package bubblewrap")?;
        let is_root = is_root();
        let needed = ["/usr/bin/prlimit", "/usr/bin/setpriv"];
        if let Some(missing) =
            needed[..if is_root { 2 } else { 1 }].iter().find(|path| !Path::new(path).exists())
        {
            return Err(format!("there is no {missing}: install the package util-linux"));
        }
        let help = Command::new(&bwrap).arg("--help").env_clear().stdin(Stdio::null()).output();
        let help =
            help.map_err(|error| format!("{} cannot be started: {error}", bwrap.display()))?;
        let can_disable_userns = String::from_utf8_lossy(&help.stdout).contains("--disable-userns");
        let cgroups = Cgroups::for_this_process();
        let filter = NamelessFile::from_filter(if cgroups.is_ok() {
            MemoryBound::Cgroup
        } else {
            MemoryBound::Watch
        })?;
        Ok(Self { bwrap, is_root, can_disable_userns, filter, cgroups })
    }

    pub(super) fn workspace_user(&self) -> WorkspaceUser {
        if self.is_root { WorkspaceUser::Own } else { WorkspaceUser::Server }
    }

    /// Returns the process that runs a command in a sandbox, and the file with bubblewrap's options, which must stay open until
    /// the process has read it. A command can read bubblewrap's command line in `/proc/1/cmdline`, so the options, which name
    /// folders of the server, are not in it.
    pub(super) fn launch(
        &self,
        command: &IsolatedCommand<'_>,
        limits: &SandboxOptions,
    ) -> io::Result<(Command, NamelessFile)> {
        let options = NamelessFile::new(&self.options(command).terminated())?;
        let mut arguments = Arguments::default();
        arguments.all(["-c", LAUNCHER, "sh"]);
        arguments.all([command.cgroup.map_or(OsStr::new(""), |cgroup| cgroup.path.as_os_str())]);
        arguments.all([self.filter.path(), options.path()]);
        arguments.all([&self.bwrap]);
        arguments.add("--args 4 --");
        if self.is_root {
            let user = command.workspace.user_id;
            arguments.all([
                "/usr/bin/setpriv".to_owned(),
                format!("--reuid={user}"),
                format!("--regid={user}"),
            ]);
            arguments.add("--clear-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs");
        }
        arguments.all([
            "/usr/bin/prlimit".to_owned(),
            format!("--nproc={}", limits.processes),
            format!("--fsize={}", command.file_bytes),
            // CPU time ends a process that survives the time limit.
            format!("--cpu={}", limits.timeout.as_secs().saturating_add(1)),
        ]);
        if command.cgroup.is_none() {
            arguments.all([format!("--as={}", limits.memory_bytes)]);
        }
        arguments.add("--core=0 --nofile=256 -- /bin/sh -c");
        arguments.all(["cd /workspace && exec \"$@\"", "sh"]);
        arguments.all(command.words);
        let mut process = Command::new("/bin/sh");
        // A command can read bubblewrap's own environment in /proc/1/environ.
        process.args(arguments.0).env_clear();
        Ok((process, options))
    }

    /// Returns bubblewrap's options.
    fn options(&self, command: &IsolatedCommand<'_>) -> Arguments {
        let mut arguments = Arguments::default();
        arguments.add("--seccomp 3");
        // The sandbox has namespaces of its own, except for the user. It ends with this server, and
        // has no access to its terminal.
        arguments
            .add("--unshare-ipc --unshare-net --unshare-pid --unshare-uts --unshare-cgroup-try");
        arguments
            .add("--die-with-parent --new-session --hostname sandbox --cap-drop ALL --clearenv");
        if self.is_root {
            // `setpriv` below needs these to change the user, and then drops them.
            arguments.add("--cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP");
        } else {
            arguments.add("--unshare-user --uid 1000 --gid 1000");
            if self.can_disable_userns {
                arguments.add("--disable-userns");
            }
        }
        for (name, value) in ENVIRONMENT {
            arguments.all(["--setenv", name, value]);
        }
        arguments.add("--ro-bind /usr /usr");
        for folder in SYSTEM_FOLDERS {
            match std::fs::read_link(folder) {
                Ok(target) => {
                    arguments.all([OsStr::new("--symlink"), target.as_os_str(), OsStr::new(folder)])
                }
                Err(_) => arguments.all(["--ro-bind-try", folder, folder]),
            }
        }
        // The default mode would make `/etc` unreadable for the command.
        arguments.add("--perms 0755 --dir /etc");
        for file in ETC_FILES {
            arguments.all(["--ro-bind-try", file, file]);
        }
        arguments.add("--proc /proc --dev /dev");
        if command.cgroup.is_none() {
            // A shared mapping of `/dev/zero` is memory of no process. `/dev/full` has the same
            // bytes.
            arguments.add("--dev-bind /dev/full /dev/zero");
        }
        let workspace = command.workspace;
        arguments.all([OsStr::new("--bind"), workspace.path.as_os_str(), OsStr::new(WORKSPACE)]);
        // `/dev` and `/` are file systems in memory without a size limit.
        arguments.add("--remount-ro /dev --remount-ro /");
        arguments
    }
}

pub(super) fn readable_system_folder(path: &Path) -> Option<&'static str> {
    // A path that does not exist yet will be in its nearest existing folder.
    let real = path.ancestors().find_map(|folder| std::fs::canonicalize(folder).ok())?;
    let mut readable = SYSTEM_FOLDERS.into_iter().chain(ETC_FILES).chain(["/usr"]);
    readable.find(|folder| {
        real.starts_with(std::fs::canonicalize(folder).unwrap_or_else(|_| folder.into()))
    })
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, words: &str) {
        self.all(words.split(' '));
    }

    fn all<S: AsRef<OsStr>>(&mut self, arguments: impl IntoIterator<Item = S>) {
        self.0.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
    }

    /// Returns the arguments, each with a zero byte behind it.
    fn terminated(&self) -> Vec<u8> {
        self.0
            .iter()
            .flat_map(|argument| argument.as_encoded_bytes().iter().chain(&[0]))
            .copied()
            .collect()
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // A relative folder depends on the working directory.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_commands_can_read_are_found() {
        assert!(readable_system_folder(Path::new("/usr/local/share/agui/workspaces")).is_some());
        assert!(readable_system_folder(Path::new("/lib/agui")).is_some());
        assert_eq!(readable_system_folder(Path::new("/var/lib/agui-server/workspaces")), None);
        assert_eq!(readable_system_folder(Path::new("/usra")), None);
    }
}
