//! The tools of the sandbox: one that runs commands, and five that read, write, list, remove and hand over files.

use std::{process::ExitStatus, sync::Arc};

use futures::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};

use super::{
    Growth, Sandbox,
    process::{CommandEnd, CommandOutput},
    usage::ExceededLimit,
};
use agui_agent::files::SharedFile;
use agui_protocol::JsonObject;
use agui_tools::{FnTool, Repeat, Tool, ToolContext, ToolError, ToolSpec, host::object_schema};

const READING: [&str; 3] = ["read_file", "list_files", "share_file"];
const MAX_LISTED_FILES: usize = 500;

const WRITE: &str = "mkdir -p -- \"$(dirname -- \"$1\")\" && exec cat > \"$1\"";
/// Folders can lack the permissions that removing needs. `$1` is a relative path, which may be the workspace itself.
const REMOVE: &str =
    "[ -e \"$1\" ] || [ -h \"$1\" ] || { echo \"rm: $1: No such file or directory\" >&2; exit 1; }
[ -h \"$1\" ] || [ ! -d \"$1\" ] || chmod -R u+rwX -- \"$1\"
case $1 in ./|./.) exec find . -mindepth 1 -delete;; *) exec rm -rf -- \"$1\";; esac";

/// Prints at most `$2` bytes of a regular file. A link can only lead into the read-only system,
/// whose files are not worth sharing, and a pipe or a device has no end.
const PRINT: &str = "path=$(realpath -e -- \"$1\") || exit 1
case $path in /workspace/*) ;; *) echo \"share_file: the file is not in the workspace\" >&2; exit 1;; esac
[ -f \"$path\" ] || { echo \"share_file: not a regular file\" >&2; exit 1; }
exec head -c \"$2\" -- \"$path\"";

/// Media types that the bytes of a file do not show, by the end of its name.
const TYPES: [(&str, &str); 9] = [
    ("csv", "text/csv"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("html", "text/html"),
    ("json", "application/json"),
    ("md", "text/markdown"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("txt", "text/plain"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("zip", "application/zip"),
];

impl Sandbox {
    /// Returns the tools `run_command`, `read_file`, `write_file`, `list_files`, `remove_files` and `share_file`.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        specs()
            .into_iter()
            .map(|(spec, command)| {
                let approval = self
                    .options
                    .approval_of
                    .get(&spec.name)
                    .unwrap_or(&self.options.approval)
                    .clone();
                let sandbox = self.clone();
                let call = move |arguments, cx| command(sandbox.clone(), arguments, cx);
                let repeat =
                    if READING.contains(&&*spec.name) { Repeat::Safe } else { Repeat::Never };
                Arc::new(FnTool::from_spec(spec, call).needs_approval(approval).repeat(repeat))
                    as Arc<dyn Tool>
            })
            .collect()
    }

    async fn run_command(
        self: Arc<Self>,
        arguments: JsonObject,
        cx: ToolContext,
    ) -> Result<String, ToolError> {
        let command = text(&arguments, "command").unwrap_or_default();
        if command.contains('\0') {
            return Err(ToolError::new("the command has a zero byte; remove it"));
        }
        let output = self.run(&["/bin/sh", "-c", command], None, Growth::Allowed, &cx).await?;
        Ok(self.result_json(&output))
    }

    async fn read_file(
        self: Arc<Self>,
        arguments: JsonObject,
        cx: ToolContext,
    ) -> Result<String, ToolError> {
        let path = relative_path(&arguments)?;
        let output = self.run(&["/bin/cat", "--", &path], None, Growth::None, &cx).await?;
        let output = self.require_success(output)?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.truncated {
            text.push_str("\n[The file is longer; this is its beginning.]");
        }
        Ok(text)
    }

    async fn write_file(
        self: Arc<Self>,
        arguments: JsonObject,
        cx: ToolContext,
    ) -> Result<String, ToolError> {
        let path = relative_path(&arguments)?;
        let content = text(&arguments, "content").unwrap_or_default().to_owned();
        let written = format!("Wrote {} bytes.", content.len());
        let write = ["/bin/sh", "-c", WRITE, "sh", &path];
        let output = self.run(&write, Some(content), Growth::Allowed, &cx).await?;
        self.require_success(output).map(|_| written)
    }

    async fn list_files(
        self: Arc<Self>,
        arguments: JsonObject,
        cx: ToolContext,
    ) -> Result<String, ToolError> {
        let path = relative_path(&arguments)?;
        let find = ["/usr/bin/find", &path, "-mindepth", "1", "-printf", "%y\\t%s\\t%P\\0"];
        let output = self.run(&find, None, Growth::None, &cx).await?;
        Ok(listed_files(&self.require_success(output)?).to_string())
    }

    async fn remove_files(
        self: Arc<Self>,
        arguments: JsonObject,
        cx: ToolContext,
    ) -> Result<String, ToolError> {
        let path = relative_path(&arguments)?;
        let output =
            self.run(&["/bin/sh", "-c", REMOVE, "sh", &path], None, Growth::None, &cx).await?;
        self.require_success(output).map(|_| "Removed.".to_owned())
    }

    async fn share_file(
        self: Arc<Self>,
        arguments: JsonObject,
        cx: ToolContext,
    ) -> Result<String, ToolError> {
        let path = relative_path(&arguments)?;
        let most = SharedFile::max_bytes(cx.run().files());
        let print = ["/bin/sh", "-c", PRINT, "sh", &path, &(most + 1).to_string()];
        let output = self.run_printing(&print, None, Growth::None, most + 1, &cx).await?;
        let bytes = self.require_success(output)?.stdout;
        if bytes.len() > most {
            return Err(ToolError::new(format!(
                "the file has more than {most} bytes; share a smaller one"
            )));
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let ending = name
            .rsplit_once('.')
            .map(|(_, ending)| ending.to_ascii_lowercase())
            .unwrap_or_default();
        let known = TYPES.iter().find(|(known, _)| *known == ending);
        let told = format!("The user has got the file, which has {} bytes.", bytes.len());
        cx.file(
            name,
            known.map_or("application/octet-stream", |(_, media_type)| media_type),
            bytes,
        )
        .await?;
        Ok(told)
    }

    /// A failed command is a result as well, so that the model can correct it.
    fn result_json(&self, output: &CommandOutput) -> String {
        let mut result = json!({});
        match self.status(output.end) {
            Ok(status) => result["exit_code"] = json!(status.code()),
            Err(reason) => result["stopped"] = json!(reason),
        }
        result["stdout"] = String::from_utf8_lossy(&output.stdout).into();
        result["stderr"] = String::from_utf8_lossy(&output.stderr).into();
        if output.truncated {
            result["truncated"] = true.into();
        }
        result.to_string()
    }

    fn require_success(&self, output: CommandOutput) -> Result<CommandOutput, ToolError> {
        if self.status(output.end).map_err(ToolError::new)?.success() {
            return Ok(output);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let line = stderr.lines().next().unwrap_or("the sandbox gives no reason");
        // The line begins with the name of a program that the model did not call, such as `cat: `.
        Err(ToolError::new(line.split_once(": ").map_or(line, |(_, reason)| reason)))
    }

    /// Returns the exit status of a command, or the reason why it was stopped.
    fn status(&self, end: CommandEnd) -> Result<ExitStatus, String> {
        let options = &self.options;
        Err(match end {
            CommandEnd::Exited(status) => return Ok(status),
            CommandEnd::TimedOut => {
                format!("it took longer than {} seconds", options.timeout.as_secs_f32())
            }
            CommandEnd::Exceeded(ExceededLimit::Memory) => {
                format!("it took more than {} MB of memory", options.memory_bytes >> 20)
            }
            CommandEnd::Exceeded(ExceededLimit::Workspace) => {
                format!("the workspace had more than {} MB", options.workspace_bytes >> 20)
            }
            CommandEnd::Exceeded(ExceededLimit::Disk) => {
                "the disk of the workspaces was almost full".to_owned()
            }
        })
    }
}

type Command =
    fn(Arc<Sandbox>, JsonObject, ToolContext) -> BoxFuture<'static, Result<String, ToolError>>;

/// Returns the tools' descriptions and commands.
fn specs() -> [(ToolSpec, Command); 6] {
    let path = |description: &str| json!({ "type": "string", "minLength": 1, "maxLength": 1000, "description": description });
    let spec = |name: &str, description: &str, properties: Value, required: &[&str]| {
        ToolSpec::new(name, description, object_schema(properties, required))
    };
    let run_command = spec(
        "run_command",
        "Runs a shell command (POSIX sh) in this conversation's workspace folder, without a network. Files stay \
         for the next command, processes do not. The result is its exit code and what it printed.",
        json!({ "command": { "type": "string", "minLength": 1, "maxLength": 100_000 } }),
        &["command"],
    );
    let file = path("The file, relative to the workspace.");
    let description = "Reads a text file of the workspace folder.";
    let read_file = spec("read_file", description, json!({ "path": file }), &["path"]);
    let description = "Writes a text file into the workspace folder, with the folders that it is in, in place of one of \
                       the same name.";
    let content = json!({ "path": file, "content": { "type": "string" } });
    let write_file = spec("write_file", description, content, &["path", "content"]);
    let folder = path("The folder, relative to the workspace; the workspace itself if left out.");
    let description = "Lists the files below a folder of the workspace, with their sizes.";
    let list_files = spec("list_files", description, json!({ "path": folder }), &[]);
    let either = path("The file or folder, relative to the workspace; `.` removes all files.");
    let description =
        "Removes a file, or a folder with all that is in it. Works in a full workspace, too.";
    let remove_files = spec("remove_files", description, json!({ "path": either }), &["path"]);
    let description = "Hands a file of the workspace over to the user, such as a chart or a report. It is the only way to show \
                       a file: links to the workspace do not work.";
    let share_file = spec("share_file", description, json!({ "path": file }), &["path"]);
    [
        (run_command, |sandbox, arguments, cx| sandbox.run_command(arguments, cx).boxed()),
        (read_file, |sandbox, arguments, cx| sandbox.read_file(arguments, cx).boxed()),
        (write_file, |sandbox, arguments, cx| sandbox.write_file(arguments, cx).boxed()),
        (list_files, |sandbox, arguments, cx| sandbox.list_files(arguments, cx).boxed()),
        (remove_files, |sandbox, arguments, cx| sandbox.remove_files(arguments, cx).boxed()),
        (share_file, |sandbox, arguments, cx| sandbox.share_file(arguments, cx).boxed()),
    ]
}

/// Returns the argument `path`, relative to the workspace. Links need no check: in the sandbox they cannot lead out.
fn relative_path(arguments: &JsonObject) -> Result<String, ToolError> {
    let path = text(arguments, "path").unwrap_or(".");
    let inner = match path.strip_prefix("/workspace") {
        Some(inner) if inner.is_empty() || inner.starts_with('/') => inner.trim_start_matches('/'),
        _ => path,
    };
    if inner.starts_with('/') || inner.split('/').any(|name| name == "..") || inner.contains('\0') {
        return Err(ToolError::new(format!(
            "{path:?} is not a path in the workspace: use a relative path without `..`"
        )));
    }
    Ok(format!("./{inner}"))
}

fn text<'a>(arguments: &'a JsonObject, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn listed_files(output: &CommandOutput) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    // The last record is incomplete if the output was cut.
    let whole = text.rsplit_once('\0').map_or("", |(whole, _)| whole);
    let mut files: Vec<_> = whole
        .split('\0')
        .filter_map(|line| {
            let mut parts = line.splitn(3, '\t');
            let kind = parts.next()?;
            let size = parts.next()?;
            let path = parts.next()?;
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
    let truncated = output.truncated || files.len() > MAX_LISTED_FILES;
    let files: Vec<Value> =
        files.into_iter().take(MAX_LISTED_FILES).map(|(_, file)| file).collect();
    if truncated { json!({ "files": files, "truncated": true }) } else { json!({ "files": files }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argument(path: &str) -> JsonObject {
        [("path".to_owned(), path.into())].into_iter().collect()
    }

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
            assert_eq!(relative_path(&argument(path)).unwrap(), expected);
        }
        for path in ["/etc/passwd", "..", "a/../../b", "/workspace/../etc", "/workspaces/x", "a\0b"]
        {
            assert!(relative_path(&argument(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn schemas_are_valid_and_names_are_those_of_the_options() {
        for ((spec, _), name) in specs().into_iter().zip(crate::options::TOOL_NAMES) {
            assert_eq!(spec.name, name);
            agui_tools::Validator::new(&spec.parameters).unwrap();
        }
    }
}
