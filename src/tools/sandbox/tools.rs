//! The tools of the group: a command, and files that are read, written and listed.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Ended, Output, Sandbox};
use crate::{
    protocol::{JsonObject, MessageContent},
    tools::{Approval, ApprovalRule, Tool, ToolContext, ToolError, ToolSpec},
};

/// The most files that are listed.
const MOST_LISTED: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    RunCommand,
    ReadFile,
    WriteFile,
    ListFiles,
}

struct SandboxTool {
    kind: Kind,
    spec: ToolSpec,
    approval: ApprovalRule,
    sandbox: Arc<Sandbox>,
}

/// The tools of a sandbox.
pub(super) fn tools(sandbox: &Arc<Sandbox>) -> Vec<Arc<dyn Tool>> {
    let tool = |kind: Kind| -> Arc<dyn Tool> {
        let spec = spec(kind);
        let options = &sandbox.options;
        let own = options.approval_of.iter().find(|(name, _)| *name == spec.name).map(|(_, rule)| rule);
        let approval = own.unwrap_or(&options.approval).clone();
        Arc::new(SandboxTool { kind, spec, approval, sandbox: sandbox.clone() })
    };
    [Kind::RunCommand, Kind::ReadFile, Kind::WriteFile, Kind::ListFiles].map(tool).into()
}

fn spec(kind: Kind) -> ToolSpec {
    let path = |what: &str| json!({ "type": "string", "minLength": 1, "maxLength": 1000, "description": what });
    let (name, description, properties, required) = match kind {
        Kind::RunCommand => (
            "run_command",
            "Runs a shell command (POSIX sh) in this conversation's workspace folder, without a network. Files stay \
             for the next command, processes do not. The result is its exit code and what it printed.",
            json!({ "command": { "type": "string", "minLength": 1, "maxLength": 100_000 } }),
            json!(["command"]),
        ),
        Kind::ReadFile => (
            "read_file",
            "Reads a text file of the workspace folder.",
            json!({ "path": path("The file, relative to the workspace.") }),
            json!(["path"]),
        ),
        Kind::WriteFile => (
            "write_file",
            "Writes a text file into the workspace folder, with the folders that it is in, in place of one of the \
             same name.",
            json!({ "path": path("The file, relative to the workspace."), "content": { "type": "string" } }),
            json!(["path", "content"]),
        ),
        Kind::ListFiles => (
            "list_files",
            "Lists the files below a folder of the workspace, with their sizes.",
            json!({ "path": path("The folder, relative to the workspace; the workspace itself if left out.") }),
            json!([]),
        ),
    };
    let parameters =
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters }
}

#[async_trait]
impl Tool for SandboxTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        self.approval.decide(arguments)
    }

    async fn call(&self, arguments: JsonObject, cx: &ToolContext) -> Result<MessageContent, ToolError> {
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str);
        let path = || place(argument("path").unwrap_or("."));
        match self.kind {
            Kind::RunCommand => {
                let command = argument("command").unwrap_or_default();
                if command.contains('\0') {
                    return Err(ToolError::new("a command has no zero bytes"));
                }
                let output = self.sandbox.run(&["/bin/sh", "-c", command], None, cx).await?;
                Ok(self.told(&output).into())
            }
            Kind::ReadFile => {
                let path = path()?;
                let output = self.sandbox.run(&["/bin/cat", "--", &path], None, cx).await?;
                let output = self.fine(output)?;
                let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
                if output.truncated {
                    text.push_str("\n[The file is longer; this is its beginning.]");
                }
                Ok(text.into())
            }
            Kind::WriteFile => {
                let path = path()?;
                if self.sandbox.is_full(cx).await? {
                    return Err(ToolError::new("the workspace is full; remove something first"));
                }
                let content = argument("content").unwrap_or_default().to_owned();
                let written = format!("Wrote {} bytes.", content.len());
                let write = "mkdir -p -- \"$(dirname -- \"$1\")\" && exec cat > \"$1\"";
                let output = self.sandbox.run(&["/bin/sh", "-c", write, "sh", &path], Some(content), cx).await?;
                self.fine(output).map(|_| written.into())
            }
            Kind::ListFiles => {
                let path = path()?;
                let find = ["/usr/bin/find", &path, "-mindepth", "1", "-printf", "%y\\t%s\\t%P\\0"];
                let output = self.sandbox.run(&find, None, cx).await?;
                let output = self.fine(output)?;
                Ok(listed(&output).to_string().into())
            }
        }
    }
}

impl SandboxTool {
    /// The result of a command, also of one that failed: the model may do better.
    fn told(&self, output: &Output) -> String {
        let mut told = json!({});
        match output.ended {
            Ended::Itself(status) => told["exit_code"] = json!(status.code()),
            other => told["stopped"] = json!(self.why(other)),
        }
        told["stdout"] = String::from_utf8_lossy(&output.stdout).into();
        told["stderr"] = String::from_utf8_lossy(&output.stderr).into();
        if output.truncated {
            told["truncated"] = true.into();
        }
        told.to_string()
    }

    /// An output of a command that ended well.
    fn fine(&self, output: Output) -> Result<Output, ToolError> {
        match output.ended {
            Ended::Itself(status) if status.success() => Ok(output),
            Ended::Itself(_) => {
                let complaint = String::from_utf8_lossy(&output.stderr);
                let complaint = complaint.lines().next().unwrap_or("the sandbox gives no reason");
                // It begins with the program's name, which the model has not called.
                let complaint = complaint.split_once(": ").map_or(complaint, |(_, complaint)| complaint);
                Err(ToolError::new(complaint.to_owned()))
            }
            other => Err(ToolError::new(self.why(other))),
        }
    }

    fn why(&self, ended: Ended) -> String {
        let options = &self.sandbox.options;
        match ended {
            Ended::Itself(_) => "it ended".to_owned(),
            Ended::TimedOut => format!("it took longer than {} seconds", options.timeout.as_secs_f32()),
            Ended::TooMuchMemory => format!("it took more than {} MB of memory", options.memory >> 20),
            Ended::TooLargeWorkspace => format!("the workspace had more than {} MB", options.workspace_size >> 20),
        }
    }
}

/// A path in the workspace, as programs take it. What a link makes of it, the sandbox answers for.
fn place(path: &str) -> Result<String, ToolError> {
    let inner = match path.strip_prefix("/workspace") {
        Some(inner) if inner.is_empty() || inner.starts_with('/') => inner.trim_start_matches('/'),
        _ => path,
    };
    if inner.starts_with('/') || inner.split('/').any(|name| name == "..") || inner.contains('\0') {
        return Err(ToolError::new(format!(
            "{path:?} is no path in the workspace: it has to be relative, without `..`"
        )));
    }
    Ok(format!("./{inner}"))
}

/// What `find` found.
fn listed(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    // The last one may be half of a name.
    let whole = text.rsplit_once('\0').map_or("", |(whole, _)| whole);
    let mut files: Vec<_> = whole
        .split('\0')
        .filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let (kind, size, path) = (parts.next()?, parts.next()?, parts.next()?);
            let kind = match kind {
                "f" => "file",
                "d" => "folder",
                "l" => "link",
                _ => "other",
            };
            let mut file = json!({ "path": path, "type": kind });
            if kind == "file" {
                file["size"] = size.parse::<u64>().unwrap_or_default().into();
            }
            Some((path.to_owned(), file))
        })
        .collect();
    files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let truncated = output.truncated || files.len() > MOST_LISTED;
    let files: Vec<Value> = files.into_iter().take(MOST_LISTED).map(|(_, file)| file).collect();
    if truncated { json!({ "files": files, "truncated": true }) } else { json!({ "files": files }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_workspace() {
        for (path, expected) in [
            ("a", "./a"),
            ("a/b.txt", "./a/b.txt"),
            ("/workspace/a", "./a"),
            ("/workspace", "./"),
            ("-rf", "./-rf"),
            ("..a", "./..a"),
            (".", "./."),
        ] {
            assert_eq!(place(path).unwrap(), expected);
        }
        for path in ["/etc/passwd", "..", "a/../../b", "/workspace/../etc", "/workspaces/x", "a\0b"] {
            assert!(place(path).is_err(), "{path}");
        }
    }

    #[test]
    fn schemas_are_of_use() {
        for kind in [Kind::RunCommand, Kind::ReadFile, Kind::WriteFile, Kind::ListFiles] {
            crate::tools::Validator::new(&spec(kind).parameters).unwrap();
        }
    }
}
