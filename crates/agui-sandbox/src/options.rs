//! Options of the sandbox.

use std::time::Duration;

use indexmap::IndexMap;
use serde::Deserialize;
use smart_default::SmartDefault;

use agui_base::InvalidOption;
use agui_base::units;
use agui_tools::{ApprovalRule, options::check_not_zero};

/// The names of the sandbox's tools, which are the valid keys of `approval_of`.
pub const TOOL_NAMES: [&str; 6] =
    ["run_command", "read_file", "write_file", "list_files", "remove_files", "share_file"];
/// The shell, `prlimit` and a program need at least this much address space, in bytes.
const MIN_MEMORY_BYTES: u64 = 16 << 20;
/// Enough for bubblewrap, the shell and a pipeline of two programs.
const MIN_PROCESSES: u64 = 4;

/// Limits of commands, and when a person has to approve one: the table `[sandbox]` of the configuration.
#[derive(Debug, Clone, PartialEq, Deserialize, SmartDefault)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SandboxOptions {
    /// The time limit of a command. The agent's `tool_timeout_secs` limits it, too.
    #[serde(rename = "timeout_secs", with = "units::Seconds")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(Duration::from_secs(30))]
    pub timeout: Duration,
    /// The largest memory of a command, at least 16 MB: of all its processes together, and the
    /// address space of each. It is exact only in a delegated cgroup (docs/operations.md).
    #[serde(rename = "memory_mb", with = "units::Megabytes")]
    #[cfg_attr(feature = "schema", schemars(range(min = 16)))]
    #[default(512 << 20)]
    pub memory_bytes: u64,
    /// The largest number of processes and threads of a command at a time, at least 4.
    #[cfg_attr(feature = "schema", schemars(range(min = 4)))]
    #[default(64)]
    pub processes: u64,
    /// The part of a command's output, and of a file that is read, that is kept, in bytes.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(64 * 1024)]
    pub max_output_bytes: usize,
    /// The largest workspace, and the largest file in it. A full one refuses commands until files are removed.
    #[serde(rename = "workspace_mb", with = "units::Megabytes")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(256 << 20)]
    pub workspace_bytes: u64,
    /// The largest number of commands of all conversations at a time; a principal has at most half of them. Further ones wait.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[default(8)]
    pub max_commands: usize,
    /// The calls that a person has to approve, as for `[tools]`, for all tools of the group.
    pub approval: ApprovalRule,
    /// The calls of single tools that a person has to approve, as for `[tools]`, by the tool's
    /// name.
    pub approval_of: IndexMap<String, ApprovalRule>,
}

impl SandboxOptions {
    /// Checks ranges and the names of tools.
    ///
    /// # Errors
    /// An [`InvalidOption`] for the first wrong option.
    pub fn check(&self) -> Result<(), InvalidOption> {
        check_not_zero([
            ("timeout_secs", self.timeout.is_zero()),
            ("workspace_mb", self.workspace_bytes == 0),
            ("max_output_bytes", self.max_output_bytes == 0),
            ("max_commands", self.max_commands == 0),
        ])?;
        if self.memory_bytes < MIN_MEMORY_BYTES {
            return Err(InvalidOption::new(
                "memory_mb",
                format!("at least {} are needed", MIN_MEMORY_BYTES >> 20),
            ));
        }
        if self.processes < MIN_PROCESSES {
            return Err(InvalidOption::new(
                "processes",
                format!("at least {MIN_PROCESSES} are needed"),
            ));
        }
        match self.approval_of.keys().find(|name| !TOOL_NAMES.contains(&name.as_str())) {
            Some(name) => Err(InvalidOption::at(
                &["approval_of", name],
                format!(
                    "the sandbox has no tool `{name}`; its tools are {}",
                    TOOL_NAMES.join(", ")
                ),
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_the_configuration_is_read_with_its_units() {
        let text = "timeout_secs = 5\nmemory_mb = 64\nworkspace_mb = 2\napproval_of = { run_command = \"always\" }";
        let options: SandboxOptions = toml::from_str(text).unwrap();
        let sizes = (options.memory_bytes, options.workspace_bytes, options.max_output_bytes);
        assert_eq!((options.timeout, sizes), (Duration::from_secs(5), (64 << 20, 2 << 20, 65_536)));
        assert_eq!(options.approval_of["run_command"], ApprovalRule::Always);
        options.check().unwrap();
        SandboxOptions::default().check().unwrap();
    }

    #[test]
    fn wrong_options_are_named() {
        for (text, expected) in [
            ("timeout_secs = 0", "timeout_secs: at least 1 is needed"),
            ("memory_mb = 15", "memory_mb: at least 16 are needed"),
            ("processes = 3", "processes: at least 4 are needed"),
            ("max_output_bytes = 0", "max_output_bytes: at least 1 is needed"),
            ("max_commands = 0", "max_commands: at least 1 is needed"),
            ("workspace_mb = 0", "workspace_mb: at least 1 is needed"),
            (
                "approval_of = { rm = \"always\" }",
                "approval_of.rm: the sandbox has no tool `rm`; its tools are run_c",
            ),
        ] {
            let error =
                toml::from_str::<SandboxOptions>(text).unwrap().check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{text}\n{error}");
        }
    }
}
