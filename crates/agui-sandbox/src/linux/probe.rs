//! Tests the isolation of the sandbox before a command is run in it.

use std::{
    io::Read as _,
    process::{Child, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use super::{
    super::SandboxOptions,
    isolation::{IsolatedCommand, Isolation},
    procfs,
    seccomp::NamelessFile,
    workspace::Workspace,
};

const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The memory limit of the command that tests whether cgroups bound memory, in bytes.
const MEMORY_LIMIT: u64 = 16 << 20;
/// Keeps four times [`MEMORY_LIMIT`] in memory.
const MEMORY_SCRIPT: &str = "head -c 67108864 /dev/zero | tail -c 67108864 > /dev/null";
/// `$1` is the path of the workspace outside the sandbox.
const PROBE_SCRIPT: &str = r#"
fail() { echo "$1" >&2; exit 1; }
echo here > /workspace/probe || fail "the workspace cannot be written"
for place in /probe /usr/probe /dev/probe /dev/shm/probe /tmp/probe /proc/sys/kernel/hostname; do
    if (: > "$place") 2>/dev/null; then fail "$place can be written"; fi
done
[ ! -e "$1" ] || fail "files of the server can be seen"
[ "$(id -u)" != 0 ] || fail "commands would run as root"
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || fail "commands would have capabilities"
grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/self/status || fail "commands could get privileges"
grep -q '^Seccomp:[[:space:]]*2$' /proc/self/status || fail "system calls are not filtered"
if unshare -U true 2>/dev/null; then fail "commands can create user namespaces"; fi
if unshare -Urm mount -t tmpfs none /workspace 2>/dev/null; then fail "commands can mount file systems"; fi
[ "$$" -lt 100 ] || fail "processes of the server can be seen"
while read -r name rest; do
    case $name in Inter-*|face*|lo:*) ;; *) fail "there is a network: $name" ;; esac
done < /proc/net/dev
exec 0</dev/null
for descriptor in /proc/$$/fd/*; do
    # The shell has closed the descriptor by which it read the list.
    case $descriptor in */[012]) ;; *) [ ! -e "$descriptor" ] || fail "commands inherit descriptors of the server" ;; esac
done
echo > /workspace/tested
exec sleep 60
"#;

pub(super) fn probe(isolation: &Isolation, options: &SandboxOptions) -> Result<(), String> {
    let workspace = Workspace::temporary(isolation.workspace_user()).map_err(|error| {
        format!("a workspace cannot be created in {}: {error}", std::env::temp_dir().display())
    })?;
    let result = run(isolation, options, &workspace);
    workspace.remove();
    result
}

fn run(
    isolation: &Isolation,
    options: &SandboxOptions,
    workspace: &Workspace,
) -> Result<(), String> {
    let outside =
        workspace.path.to_str().ok_or("the path of the folder for temporary files is not UTF-8")?;
    let new_cgroup = |limits: &SandboxOptions| {
        let cgroup = isolation.cgroups.ok().map(|cgroups| cgroups.create(limits)).transpose();
        cgroup.map_err(|error| format!("a cgroup cannot be created: {error}"))
    };
    if let Some(cgroup) =
        new_cgroup(&SandboxOptions { memory_bytes: MEMORY_LIMIT, ..options.clone() })?
    {
        // A command that takes more memory than its cgroup allows must be ended.
        let words = ["/bin/sh", "-c", MEMORY_SCRIPT];
        let command =
            IsolatedCommand { words: &words, workspace, cgroup: Some(&cgroup), file_bytes: 0 };
        let (mut child, _arguments) = start(isolation, options, &command)?;
        wait(&mut child, || false)?;
        if !cgroup.is_out_of_memory() {
            return Err("cgroups do not bound the memory of commands".to_owned());
        }
    }
    let cgroup = new_cgroup(options)?;
    let words = ["/bin/sh", "-c", PROBE_SCRIPT, "sh", outside];
    let command = IsolatedCommand {
        words: &words,
        workspace,
        cgroup: cgroup.as_ref(),
        file_bytes: options.workspace_bytes,
    };
    let (mut child, _arguments) = start(isolation, options, &command)?;
    let tested = workspace.path.join("tested");
    let Some(status) = wait(&mut child, || tested.exists())? else {
        // The script passed and still runs, so that its processes can be inspected.
        let usage = procfs::usage_of_tree(child.id());
        let _ = child.kill();
        let _ = child.wait();
        let is_readable = usage.unlinked != u64::MAX;
        return if is_readable {
            Ok(())
        } else {
            Err("the open files of commands cannot be read in /proc".to_owned())
        };
    };
    let mut output = String::new();
    // If stderr cannot be read, the error has the exit status.
    let _ = child.stderr.take().map(|stderr| stderr.take(2000).read_to_string(&mut output));
    Err(match output.trim().lines().last() {
        None => format!("bwrap ended with {status}"),
        Some(reason) => reason.to_owned(),
    })
}

/// Starts a command. Also returns the file with bubblewrap's options, which must stay open.
fn start(
    isolation: &Isolation,
    options: &SandboxOptions,
    command: &IsolatedCommand<'_>,
) -> Result<(Child, NamelessFile), String> {
    let cannot_start = |error| format!("bwrap cannot be started: {error}");
    let (mut process, arguments) = isolation.launch(command, options).map_err(cannot_start)?;
    process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    Ok((process.spawn().map_err(cannot_start)?, arguments))
}

/// Waits until a process ends. Returns `None` if `is_done` before.
fn wait(child: &mut Child, is_done: impl Fn() -> bool) -> Result<Option<ExitStatus>, String> {
    let deadline = Instant::now() + PROBE_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if is_done() => return Ok(None),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("the test of the sandbox does not end".to_owned());
            }
            Err(error) => return Err(format!("bwrap cannot be waited for: {error}")),
        }
    }
}
