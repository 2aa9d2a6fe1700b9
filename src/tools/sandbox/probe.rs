//! Tests the isolation of the sandbox before a command is run in it.

use std::{
    io::Read as _,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use super::{isolation::Isolation, options::SandboxOptions, workspace::Workspace};

const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

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
[ "$$" -lt 100 ] || fail "processes of the server can be seen"
while read -r name rest; do
    case $name in Inter-*|face*|lo:*) ;; *) fail "there is a network: $name" ;; esac
done < /proc/net/dev
"#;

pub(super) fn probe(isolation: &Isolation, options: &SandboxOptions) -> Result<(), String> {
    let workspace = Workspace::temporary(isolation.has_own_users())
        .map_err(|error| format!("a workspace cannot be created in {}: {error}", std::env::temp_dir().display()))?;
    let result = run(isolation, options, &workspace);
    workspace.remove();
    result
}

fn run(isolation: &Isolation, options: &SandboxOptions, workspace: &Workspace) -> Result<(), String> {
    let outside = workspace.path().to_str().ok_or("the path of the folder for temporary files is not UTF-8")?;
    let arguments = isolation.arguments(workspace, options, &["/bin/sh", "-c", PROBE_SCRIPT, "sh", outside]);
    let mut command = Command::new(isolation.program());
    command.args(arguments).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("bwrap cannot be started: {error}"))?;
    let status = wait(&mut child)?;
    if status.success() {
        return Ok(());
    }
    let mut output = String::new();
    // If stderr cannot be read, the error has the exit status.
    let _ = child.stderr.take().map(|stderr| stderr.take(2000).read_to_string(&mut output));
    Err(match output.trim().lines().last() {
        None => format!("bwrap ended with {status}"),
        Some(reason) => reason.to_owned(),
    })
}

fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    let deadline = Instant::now() + PROBE_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
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
