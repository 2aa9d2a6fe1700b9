//! Commands that print a key.

use std::{process::Stdio, time::Duration};

use tokio::{process::Command, time::timeout};

use agui_base::text::short_line;

/// The time limit of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the output of a command. The command is killed if the future is dropped.
pub(super) async fn output(command: &[String]) -> Result<Vec<u8>, String> {
    let mut process = Command::new(&command[0]);
    process.args(&command[1..]).stdin(Stdio::null()).kill_on_drop(true);
    match timeout(COMMAND_TIMEOUT, process.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(output.stdout),
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("failed ({}): {}", output.status, short_line(said.trim())))
        }
        Ok(Err(error)) => Err(format!("cannot be run: {error}")),
        Err(_) => Err(format!("did not end in {COMMAND_TIMEOUT:?}")),
    }
}
