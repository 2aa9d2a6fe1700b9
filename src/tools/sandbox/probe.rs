//! Tries whether a sandbox is one, before anything is run in it.

use std::{
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use super::{SandboxOptions, isolation::Isolation, workspace::Workspace};

/// A sandbox that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends well if the sandbox holds, and otherwise says what does not. The argument is the workspace's place outside.
const TEST: &str = r#"
fail() { echo "$1" >&2; exit 1; }
echo here > /workspace/probe || fail "the workspace cannot be written"
for place in /probe /usr/probe /dev/probe /dev/shm/probe /tmp/probe /proc/sys/kernel/hostname; do
    if (: > "$place") 2>/dev/null; then fail "$place can be written"; fi
done
[ ! -e "$1" ] || fail "files of the server can be seen"
[ "$(id -u)" != 0 ] || fail "commands would run as root"
grep -q '^CapEff:[[:space:]]*0*$' /proc/self/status || fail "commands would have capabilities"
grep -q '^NoNewPrivs:[[:space:]]*1$' /proc/self/status || fail "commands could get privileges"
[ "$$" -lt 100 ] || fail "processes of the server can be seen"
while read -r name rest; do
    case $name in Inter-*|face*|lo:*) ;; *) fail "there is a network: $name" ;; esac
done < /proc/net/dev
"#;

/// Runs the test in a sandbox.
pub(super) fn probe(isolation: &Isolation, options: &SandboxOptions) -> Result<(), String> {
    let workspace = Workspace::temporary(isolation.has_own_users())
        .map_err(|error| format!("a workspace cannot be made in {}: {error}", std::env::temp_dir().display()))?;
    let result = run(isolation, options, &workspace);
    workspace.remove();
    result
}

fn run(isolation: &Isolation, options: &SandboxOptions, workspace: &Workspace) -> Result<(), String> {
    let outside = workspace.path().to_str().ok_or("the folder for temporary files has no name in UTF-8")?;
    let arguments = isolation.arguments(workspace, options, &["/bin/sh", "-c", TEST, "sh", outside]);
    let mut command = Command::new(isolation.program());
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("bwrap cannot be started: {error}"))?;
    let status = wait(&mut child)?;
    if status.success() {
        return Ok(());
    }
    let mut told = String::new();
    // What it says is short; without it there is still its status.
    let _ = child.stderr.take().map(|stderr| stderr.take(2000).read_to_string(&mut told));
    Err(match told.trim() {
        "" => format!("bwrap ended with {status}"),
        told => told.lines().last().unwrap_or(told).to_owned(),
    })
}

fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err("bwrap does not answer".to_owned());
            }
            Err(error) => return Err(format!("bwrap cannot be waited for: {error}")),
        }
    }
}
