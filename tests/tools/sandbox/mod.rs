//! The sandbox of commands, as `/agent/agent/stream` uses it.
//!
//! These tests fail if the sandbox cannot isolate commands, unless `AGUI_SKIP_SANDBOX` is set. Then
//! `tests/run.sh` sets it, and reports it.

#[cfg(target_os = "linux")]
mod attacks;
mod workspaces;

use std::{
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::{
    agent::{Principal, RunContext},
    tools::{
        Approval, ApprovalRule, Tool, ToolContext, ToolError,
        sandbox::{Sandbox, SandboxOptions},
    },
};
use serde_json::{Value, json};

use crate::support::{
    named_events::{AGENT, TestServer, call, chunk, named, on, said},
    provider::{Answer, Provider},
    server::BINARY,
};

/// Returns whether these tests are skipped.
#[allow(clippy::print_stderr, reason = "a skipped test must be visible")]
pub(crate) fn is_skipped() -> bool {
    let is_skipped = std::env::var_os("AGUI_SKIP_SANDBOX").is_some();
    if is_skipped {
        eprintln!("skipped: commands cannot be isolated here");
    }
    is_skipped
}

pub(crate) struct TestSandbox {
    pub(crate) sandbox: Arc<Sandbox>,
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) folder: tempfile::TempDir,
}

impl TestSandbox {
    pub(crate) fn new(change: impl FnOnce(&mut SandboxOptions)) -> Option<Self> {
        if is_skipped() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut options = SandboxOptions::default();
        change(&mut options);
        let sandbox = Sandbox::new(folder.path().join("workspaces"), options)
            .unwrap_or_else(|error| panic!("{error}"));
        Some(Self { tools: sandbox.tools(), sandbox, folder })
    }

    pub(crate) async fn call_on(
        &self,
        thread: &str,
        name: &str,
        arguments: Value,
    ) -> Result<String, ToolError> {
        self.call_of(None, thread, name, arguments).await
    }

    pub(crate) async fn call_of(
        &self,
        principal: Option<&str>,
        thread: &str,
        name: &str,
        arguments: Value,
    ) -> Result<String, ToolError> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        let principal = principal.map(|name| Principal::new("test", name));
        let run = RunContext::new(thread, "r", "a").with_caller(principal, []);
        let cx = ToolContext::new(run, Value::Null, "c", name);
        tool.call(arguments, &cx).await.map(|content| content.text().into_owned())
    }

    /// Shares a file, and returns the content of its activity.
    async fn share(&self, path: &str) -> Result<Value, String> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == "share_file").unwrap();
        let cx = ToolContext::new(RunContext::new("t", "r", "a"), Value::Null, "c", "share_file");
        let arguments = json!({ "path": path }).as_object().unwrap().clone();
        let told = tool.call(arguments, &cx).await.map_err(|error| error.message().to_owned())?;
        assert!(told.text().starts_with("The user has got the file"), "{}", told.text());
        let [event] = &cx.take_events()[..] else { panic!("one event") };
        let event = serde_json::to_value(event).unwrap();
        assert_eq!(event["activityType"], "agui-server.file");
        Ok(event["content"].clone())
    }

    pub(crate) async fn call(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        self.call_on("t", name, arguments).await
    }

    pub(crate) async fn shell(&self, command: &str) -> Value {
        serde_json::from_str(
            &self.call("run_command", json!({ "command": command })).await.unwrap(),
        )
        .unwrap()
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) async fn print(&self, command: &str) -> String {
        let told = self.shell(command).await;
        assert_eq!(told["exit_code"], 0, "{command}: {told}");
        told["stdout"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn refused(&self, name: &str, arguments: Value) -> String {
        self.call(name, arguments).await.unwrap_err().message().to_owned()
    }
}

/// Returns the number of processes of this machine with this argument.
fn processes_with(argument: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let commands =
        processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    commands
        .filter(|command| command.split(|byte| *byte == 0).any(|word| word == argument.as_bytes()))
        .count()
}

/// Makes an argument of `sleep` that no other process of this machine has.
fn marked(seconds: u32) -> String {
    format!("{seconds}.{}", std::process::id())
}

async fn wait_until_gone(argument: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while processes_with(argument) > 0 {
        assert!(
            Instant::now() < deadline,
            "a process with the argument {argument} is still running"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn each_thread_has_its_own_files() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    let wrote = sandbox
        .call("write_file", json!({ "path": "a/b c.txt", "content": "héllo\n" }))
        .await
        .unwrap();
    assert_eq!(wrote, "Wrote 7 bytes.");
    assert_eq!(
        sandbox.print("cat 'a/b c.txt'; pwd; id -u | grep -cx 0 || true").await,
        "héllo\n/workspace\n0\n"
    );
    sandbox.print("echo more >> 'a/b c.txt'; ln -s a link").await;
    for path in ["a/b c.txt", "/workspace/a/b c.txt", "link/b c.txt"] {
        assert_eq!(
            sandbox.call("read_file", json!({ "path": path })).await.unwrap(),
            "héllo\nmore\n"
        );
    }
    let listed: Value =
        serde_json::from_str(&sandbox.call("list_files", json!({})).await.unwrap()).unwrap();
    let expected = json!({ "files": [
        { "path": "a", "type": "folder" },
        { "path": "a/b c.txt", "type": "file", "size": 12 },
        { "path": "link", "type": "link" },
    ] });
    assert_eq!(listed, expected);
    // Another thread has another workspace.
    assert_eq!(sandbox.call_on("other", "list_files", json!({})).await.unwrap(), "{\"files\":[]}");
    let told = sandbox.shell("echo out; echo err >&2; exit 3").await;
    assert_eq!(told, json!({ "exit_code": 3, "stdout": "out\n", "stderr": "err\n" }));
}

#[tokio::test]
async fn there_is_no_network() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!(
        "perl -MIO::Socket::INET -e 'exit(IO::Socket::INET->new(PeerAddr => \"127.0.0.1:{port}\") ? 0 : 7)'"
    );
    // The listener is reachable from outside the sandbox.
    assert!(Command::new("sh").args(["-c", &connect]).status().unwrap().success());
    listener.accept().unwrap();
    assert_eq!(sandbox.shell(&connect).await["exit_code"], 7);
    assert!(listener.accept().is_err());
    assert_eq!(sandbox.print("grep -c : /proc/net/dev; ls /etc > /dev/null").await, "1\n");
}

#[tokio::test]
async fn commands_write_only_to_the_workspace_and_see_no_secrets() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    let secret = sandbox.folder.path().join("secret");
    std::fs::write(&secret, "key").unwrap();
    let secret = secret.to_str().unwrap();
    for place in [
        "/x",
        "/usr/x",
        "/usr/bin/x",
        "/etc/x",
        "/tmp/x",
        "/dev/x",
        "/dev/shm/x",
        "/proc/sys/kernel/hostname",
    ] {
        assert_ne!(sandbox.shell(&format!("echo x > {place}")).await["exit_code"], 0, "{place}");
    }
    for hidden in
        [secret, "/etc/shadow", "/root", "/home", "/var", "/work", env!("CARGO_MANIFEST_DIR")]
    {
        assert_ne!(sandbox.shell(&format!("ls -d {hidden}")).await["exit_code"], 0, "{hidden}");
    }
    let environment = sandbox.print("env; cat /proc/*/environ | tr '\\0' '\\n'").await;
    for line in environment.lines().filter(|line| !line.is_empty()) {
        let name = line.split('=').next().unwrap();
        assert!(
            ["PATH", "HOME", "TMPDIR", "LANG", "SHELL", "USER", "PWD", "OLDPWD", "_"]
                .contains(&name),
            "{line}"
        );
    }
    let arguments = sandbox.print("cat /proc/1/cmdline | tr '\\0' ' '").await;
    assert!(
        arguments.contains("bwrap") && !arguments.contains(sandbox.folder.path().to_str().unwrap()),
        "{arguments}"
    );
    assert!(sandbox.print("ls /proc | grep -c '^[0-9]'").await.trim().parse::<u32>().unwrap() < 10);
    assert_ne!(sandbox.shell("mount -t tmpfs none /workspace").await["exit_code"], 0);
    assert_ne!(sandbox.shell("kill -9 1; mknod /workspace/n b 8 0").await["exit_code"], 0);
}

#[tokio::test]
async fn paths_and_links_do_not_leave_the_workspace() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    let secret = sandbox.folder.path().join("secret");
    std::fs::write(&secret, "key").unwrap();
    for path in ["../secret", "/etc/passwd", "a/../../secret", "..", "/workspace/../etc/passwd"] {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "x" })),
            ("list_files", json!({ "path": path })),
        ] {
            assert!(
                sandbox.refused(tool, arguments).await.contains("is not a path in the workspace"),
                "{tool} {path}"
            );
        }
    }
    let folder = sandbox.folder.path().display();
    sandbox
        .print(&format!(
            "ln -s {folder}/secret a; ln -s {folder} b; ln -s / c; ln -s /proc/1/root d"
        ))
        .await;
    for path in ["a", "b/secret", &format!("c{folder}/secret"), &format!("d{folder}/secret")] {
        let problem = sandbox.refused("read_file", json!({ "path": path })).await;
        assert!(
            problem.contains("No such file") || problem.contains("Permission denied"),
            "{path}: {problem}"
        );
        sandbox.refused("write_file", json!({ "path": path, "content": "x" })).await;
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "key");
    // Reading a pipe without a writer ends at the time limit.
    let Some(sandbox) = TestSandbox::new(|options| options.timeout = Duration::from_secs(2)) else {
        return;
    };
    sandbox.print("mkfifo pipe").await;
    assert!(sandbox.refused("read_file", json!({ "path": "pipe" })).await.contains("longer than"));
    assert_eq!(
        sandbox.refused("read_file", json!({ "path": "nothing" })).await,
        "./nothing: No such file or directory"
    );
}

#[tokio::test]
async fn the_time_limit_covers_background_processes() {
    let Some(sandbox) = TestSandbox::new(|options| options.timeout = Duration::from_secs(2)) else {
        return;
    };
    let begin = Instant::now();
    let long = marked(86311);
    let told = sandbox
        .shell(&format!("echo before; setsid sleep {long} & trap '' TERM INT HUP; sleep {long}"))
        .await;
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(
        (&told["stopped"], &told["stdout"]),
        (&json!("it took longer than 2 seconds"), &json!("before\n"))
    );
    wait_until_gone(&long).await;
    // Background processes end with the command.
    let long = marked(86312);
    sandbox.print(&format!("setsid sleep {long} > /dev/null 2>&1 & echo started")).await;
    wait_until_gone(&long).await;
}

#[tokio::test]
async fn dropping_a_call_kills_its_processes() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    let long = marked(86313);
    {
        let call = sandbox
            .call("run_command", json!({ "command": format!("sleep {long} & sleep {long}") }));
        let mut call = std::pin::pin!(call);
        let begun = async {
            while processes_with(&long) < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            told = &mut call => panic!("{told:?}"),
            () = begun => {}
            () = tokio::time::sleep(Duration::from_secs(20)) => panic!("the command did not start"),
        }
    }
    wait_until_gone(&long).await;
}

#[tokio::test]
async fn memory_is_limited_for_each_process_and_for_all_together() {
    let Some(sandbox) = TestSandbox::new(|options| options.memory_bytes = 100 << 20) else {
        return;
    };
    let told = sandbox.shell("perl -e '$x = \"a\" x 200_000_000; print \"had it\"'").await;
    assert!(told["exit_code"] != 0 && told["stdout"] == "", "{told}");
    let told = sandbox
        .shell("for i in 1 2 3 4 5; do perl -e '$x = \"a\" x 30_000_000; sleep 9' & done; wait")
        .await;
    assert_eq!(told["stopped"], "it took more than 100 MB of memory", "{told}");
}

#[tokio::test]
async fn processes_are_limited() {
    let Some(sandbox) = TestSandbox::new(|options| options.processes = 20) else { return };
    let told = sandbox.shell("for i in $(seq 100); do sleep 2 & done; echo all").await;
    assert!(told["stdout"] == "" && told["stderr"].as_str().unwrap().contains("fork"), "{told}");
    assert_eq!(sandbox.print("for i in $(seq 5); do true & done; wait; echo fine").await, "fine\n");
}

#[tokio::test]
async fn output_and_files_are_limited() {
    let limits = |options: &mut SandboxOptions| {
        options.max_output_bytes = 1000;
        options.workspace_bytes = 5 << 20;
    };
    let Some(sandbox) = TestSandbox::new(limits) else { return };
    let told = sandbox.shell("yes | head -c 10000000; echo done >&2").await;
    assert_eq!(
        (&told["exit_code"], &told["truncated"], &told["stderr"]),
        (&json!(0), &json!(true), &json!("done\n"))
    );
    assert_eq!(told["stdout"].as_str().unwrap().len(), 1000);
    let told = sandbox.shell("head -c 9000000 /dev/zero > large").await;
    assert_ne!(told["exit_code"], 0);
    let listed: Value =
        serde_json::from_str(&sandbox.call("list_files", json!({})).await.unwrap()).unwrap();
    assert!(
        (4 << 20..=5 << 20).contains(&listed["files"][0]["size"].as_u64().unwrap()),
        "{listed}"
    );
    let read = sandbox.call("read_file", json!({ "path": "large" })).await.unwrap();
    assert!(read.ends_with("[The file is longer; this is its beginning.]"));
    sandbox.call("remove_files", json!({ "path": "large" })).await.unwrap();
    let told =
        sandbox.shell("i=0; while :; do i=$((i+1)); head -c 100000 /dev/urandom > f$i; done").await;
    assert_eq!(told["stopped"], "the workspace had more than 5 MB");
    for (tool, arguments) in [
        ("write_file", json!({ "path": "x", "content": "x" })),
        ("run_command", json!({ "command": "ls" })),
    ] {
        let full = sandbox.refused(tool, arguments).await;
        assert!(full.contains("the workspace is full") && full.contains("remove_files"), "{full}");
    }
    sandbox.call("list_files", json!({})).await.unwrap();
    sandbox.call("remove_files", json!({ "path": "." })).await.unwrap();
    sandbox.call("write_file", json!({ "path": "x", "content": "x" })).await.unwrap();
}

#[tokio::test]
async fn files_and_folders_are_removed() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    sandbox
        .print("mkdir -p a/b c; touch a/b/x c/y -- -z; ln -s c link; chmod 000 a/b; chmod 000 a")
        .await;
    for path in ["a", "link", "-z"] {
        assert_eq!(
            sandbox.call("remove_files", json!({ "path": path })).await.unwrap(),
            "Removed."
        );
    }
    assert_eq!(sandbox.print("find . | sort").await, ".\n./c\n./c/y\n");
    let problem = sandbox.refused("remove_files", json!({ "path": "nothing" })).await;
    assert_eq!(problem, "./nothing: No such file or directory");
    assert!(
        sandbox
            .refused("remove_files", json!({ "path": "../x" }))
            .await
            .contains("not a path in the workspace")
    );
    sandbox.call("remove_files", json!({ "path": "." })).await.unwrap();
    assert_eq!(sandbox.print("find .").await, ".\n");
}

#[tokio::test]
async fn calls_can_need_approval() {
    let rule = ApprovalRule::when([("command", "rm|sudo")]).unwrap();
    let change = |options: &mut SandboxOptions| {
        drop(options.approval_of.insert("run_command".to_owned(), rule))
    };
    let Some(sandbox) = TestSandbox::new(change) else { return };
    let approval = |name: &str, arguments: Value| {
        let tool = sandbox.tools.iter().find(|tool| tool.spec().name == name).unwrap();
        let arguments = arguments.as_object().unwrap().clone();
        tool.approval(&arguments)
    };
    assert_eq!(approval("run_command", json!({ "command": "rm -rf ." })), Approval::Needed);
    assert_eq!(approval("run_command", json!({ "command": "ls" })), Approval::NotNeeded);
    assert_eq!(approval("write_file", json!({ "path": "rm" })), Approval::NotNeeded);
}

/// A model writes, measures and reads a file, in two runs of a thread.
async fn check_model_with_files(server: &TestServer, provider: &Provider) {
    let write = json!({ "path": "hello.txt", "content": "hello sandbox" });
    provider.answer(Answer::openai(&[call("c1", "write_file", &write)]));
    let count =
        json!({ "command": "wc -c < hello.txt; id -u; cat /proc/self/status | grep CapEff" });
    provider.answer(Answer::openai(&[call("c2", "run_command", &count)]));
    provider.answer(Answer::openai(&[chunk(json!({ "content": "13 bytes." }))]));
    let frames = server.ask(AGENT, &on("t", "write and count")).await;
    assert_eq!(said(&frames), "13 bytes.");
    let results = named(&frames, "tool_result");
    assert_eq!(results[0]["content"], "Wrote 13 bytes.");
    let told: Value = serde_json::from_str(results[1]["content"].as_str().unwrap()).unwrap();
    let printed: Vec<_> = told["stdout"].as_str().unwrap().lines().collect();
    assert_eq!((printed[0], printed[2]), ("13", "CapEff:\t0000000000000000"), "{told}");
    assert_ne!(printed[1], "0");
    // The next run of the thread finds the file.
    provider.answer(Answer::openai(&[call("c3", "read_file", &json!({ "path": "hello.txt" }))]));
    let bomb = json!({ "command": "for i in $(seq 200); do sleep 2 & done; echo all" });
    provider.answer(Answer::openai(&[call("c4", "run_command", &bomb)]));
    provider.answer(Answer::openai(&[chunk(json!({ "content": "Read." }))]));
    let frames = server.ask(AGENT, &on("t", "read")).await;
    let results = named(&frames, "tool_result");
    assert_eq!(results[0]["content"], "hello sandbox");
    assert!(results[1]["content"].as_str().unwrap().contains("fork"), "{results:?}");
}

#[tokio::test]
async fn a_model_works_in_the_sandbox() {
    if is_skipped() {
        return;
    }
    let provider = Provider::start().await;
    let server = TestServer::with(&provider, "[\"sandbox\"]", "");
    check_model_with_files(&server, &provider).await;
}

#[tokio::test]
async fn a_command_can_need_approval() {
    if is_skipped() {
        return;
    }
    let provider = Provider::start().await;
    let rule = "[sandbox]\napproval_of = { run_command = { when = { command = \"rm \" } } }\n";
    let server = TestServer::with(&provider, "[\"sandbox\"]", rule);
    let content = json!({ "path": "a", "content": "kept" });
    provider.answer(Answer::openai(&[call("c1", "write_file", &content)]));
    provider.answer(Answer::openai(&[call(
        "c2",
        "run_command",
        &json!({ "command": "rm a; ls" }),
    )]));
    let frames = server.ask(AGENT, &on("t", "tidy up")).await;
    let (name, question) = frames.last().unwrap();
    let action = &question["action_requests"][0];
    assert_eq!((name.as_str(), &action["arguments"]["command"]), ("interrupt", &json!("rm a; ls")));
    provider.answer(Answer::openai(&[chunk(json!({ "content": "Listed." }))]));
    let edit =
        json!({ "actionId": action["actionId"], "type": "edit", "args": { "command": "ls" } });
    let frames = server.ask(AGENT, &on("t", json!({ "decisions": [edit] }))).await;
    assert!(
        named(&frames, "tool_result")[0]["content"]
            .as_str()
            .unwrap()
            .contains("\"stdout\":\"a\\n\"")
    );
}

/// A server of root isolates in another way than a server of another user.
#[tokio::test]
async fn a_model_works_in_the_sandbox_of_a_server_that_is_not_root() {
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    if is_skipped() || id != b"0\n" {
        return;
    }
    let provider = Provider::start().await;
    let server = TestServer::as_nobody(&provider, "");
    check_model_with_files(&server, &provider).await;
}

#[test]
fn without_isolation_the_server_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("server.toml");
    let text = "[agents.worker]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n\
                tools = [\"sandbox\"]\n";
    std::fs::write(&config, text).unwrap();
    let check = |path: &Path| {
        let mut command = Command::new(BINARY);
        let output = command
            .args(["check", "--config", config.to_str().unwrap()])
            .env("PATH", path)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, told) = check(folder.path());
    assert_eq!(code, Some(2), "{told}");
    assert!(
        told.contains("server.toml:6:1") && told.contains("there is no `bwrap` in PATH"),
        "{told}"
    );
    // A `bwrap` that does not isolate is detected.
    let script = "#!/bin/sh\nwhile [ $# -gt 0 ]; do a=$1; shift; [ \"$a\" = -- ] && break; done\nexec \"$@\"\n";
    let bwrap = folder.path().join("bwrap");
    std::fs::write(&bwrap, script).unwrap();
    std::fs::set_permissions(&bwrap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, told) = check(folder.path());
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("commands cannot be isolated here"), "{told}");
    std::fs::write(
        &bwrap,
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n",
    )
    .unwrap();
    let (code, told) = check(folder.path());
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("No permissions to create new namespace"), "{told}");
}

#[tokio::test]
async fn a_file_of_the_workspace_is_shared_and_nothing_else() {
    let Some(sandbox) = TestSandbox::new(|options| options.max_output_bytes = 100) else { return };
    sandbox.print("mkdir -p a && printf 'x,y\\n%0500d' 1 > 'a/my table.CSV' && ln -s 'a/my table.CSV' inner").await;
    let content = sandbox.share("a/my table.CSV").await.unwrap();
    assert_eq!(
        (&content["name"], &content["mimeType"]),
        (&json!("my table.CSV"), &json!("text/csv"))
    );
    assert_eq!(content["bytes"], 504, "it is not cut like what a command prints");
    assert!(
        content["url"].as_str().unwrap().starts_with("data:text/csv;base64,eCx5Cj"),
        "{content}"
    );
    assert_eq!(sandbox.share("inner").await.unwrap()["bytes"], 504);
    sandbox
        .print("ln -s /usr/bin/find out; ln -s /usr folder; ln -s /proc/self/environ e; mkfifo pipe; : > empty")
        .await;
    sandbox.print("ln -s /dev/zero zero; head -c 4000000 /dev/zero > large").await;
    for (path, expected) in [
        ("out", "the file is not in the workspace"),
        ("folder/bin/sh", "the file is not in the workspace"),
        ("e", "the file is not in the workspace"),
        ("zero", "the file is not in the workspace"),
        ("pipe", "not a regular file"),
        ("a", "not a regular file"),
        (".", "the file is not in the workspace"),
        ("nothing", "No such file"),
        ("../x", "is not a path in the workspace"),
        ("/etc/passwd", "is not a path in the workspace"),
        ("large", "the file has more than 3129344 bytes"),
    ] {
        let refused = sandbox.share(path).await.unwrap_err();
        assert!(refused.contains(expected), "{path}: {refused}");
    }
    assert_eq!(sandbox.share("empty").await.unwrap()["bytes"], 0);
}
