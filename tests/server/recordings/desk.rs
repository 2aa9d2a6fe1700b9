//! A folder with an agent that follows a script, and the server of this agent.

use std::{fs, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    running::events,
    server::{BINARY, Process},
};

pub struct Desk {
    folder: TempDir,
}

impl Desk {
    pub fn with_script(script: &str) -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        desk.write("my.toml", "[agents.desk]\nkind = \"script\"\nscript = \"desk.script\"\n");
        desk.write("desk.script", script);
        desk
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// `store`: the URL of the store.
    pub fn serve(&self, store: &str, arguments: &[&str]) -> Process {
        let config = self.path("my.toml");
        Process::start(&[&["--config", &config], arguments].concat(), &[("AGUI_STORE__URL", store)])
    }
}

/// Runs a command of the binary. Returns the exit code, the output and the errors.
pub fn command(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(BINARY).args(arguments).env("DESK_KEY", "secret").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

pub async fn post(process: &Process, input: &Value) -> Vec<Value> {
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let response =
        client.post(format!("{}/send-message", process.url)).json(input).send().await.unwrap();
    events(&response.text().await.unwrap())
}
