//! Commands that try to get more memory, disk or rights than their sandbox gives. Each test runs
//! the attack as a command in a real sandbox.
//!
//! Like the tests in `mod.rs`, these are skipped with `AGUI_SKIP_SANDBOX`.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{TestSandbox, is_skipped};
use crate::support::{
    named_events::{AGENT, TestServer, call, chunk, named, on},
    provider::{Answer, Provider},
    server::{BINARY, Process},
};

const MEGABYTE: u64 = 1 << 20;

/// A Perl script, as a command.
fn perl(script: &str) -> String {
    assert!(!script.contains('\''));
    format!("perl -e '{script}'")
}

/// Returns the bytes that all workspaces of a sandbox take on disk. `du` descends below the longest path.
fn bytes_on_disk(sandbox: &TestSandbox) -> u64 {
    let output = Command::new("du")
        .args(["-s", "--block-size=1"])
        .arg(sandbox.folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// The command must end for want of memory, or the system call must be missing.
fn assert_bounded(told: &Value) {
    assert!(!told["stdout"].as_str().unwrap().contains("had it"), "{told}");
    let is_stopped = told["stopped"] == "it took more than 100 MB of memory";
    assert!(is_stopped || told["stderr"].as_str().unwrap().contains("not implemented"), "{told}");
}

#[tokio::test]
async fn memory_outside_of_processes_is_bounded() {
    let Some(sandbox) = TestSandbox::new(|options| options.memory_bytes = 100 * MEGABYTE) else {
        return;
    };
    let memfd = format!(
        "for (1..10) {{ my $name = \"m\"; my $fd = syscall({}, $name, 0); die $! if $fd < 0; open($f[$_], \">&=\", $fd); \
         for my $i (1..30) {{ syswrite($f[$_], \"a\" x 1_000_000) or die $!; }} }} print \"had it\"; sleep 2",
        libc::SYS_memfd_create
    );
    assert_bounded(&sandbox.shell(&perl(&memfd)).await);
    // Mappings of 30 MB, whose pages but one are unmapped: the pages stay, and no process shows
    // them.
    let shared = format!(
        "open(Z, \"<\", \"/dev/urandom\"); for (1..10) {{ my $at = syscall({}, 0, 30 << 20, 3, {}, -1, 0); \
         die $! if $at == -1; for my $i (0..29) {{ syscall({}, fileno(Z), $at + ($i << 20), 1 << 20); }} \
         syscall({}, $at + 4096, (30 << 20) - 4096); }} print \"had it\"; sleep 2",
        libc::SYS_mmap,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        libc::SYS_read,
        libc::SYS_munmap
    );
    assert_bounded(&sandbox.shell(&perl(&shared)).await);
    let system_v = format!(
        "for (1..10) {{ my $id = syscall({}, 0, 30 << 20, 0600); die $! if $id < 0; my $at = syscall({}, $id, 0, 0); \
         syscall({}, fileno(Z), $at, 30 << 20) if open(Z, \"<\", \"/dev/urandom\"); syscall({}, $at); }} \
         print \"had it\"; sleep 2",
        libc::SYS_shmget,
        libc::SYS_shmat,
        libc::SYS_read,
        libc::SYS_shmdt
    );
    assert_bounded(&sandbox.shell(&perl(&system_v)).await);
    // Private mappings, and zeros to read, are still there.
    assert_eq!(sandbox.print("head -c 4 /dev/zero | od -An -tx1").await.trim(), "00 00 00 00");
}

#[tokio::test]
async fn memory_in_sockets_is_bounded() {
    let Some(sandbox) = TestSandbox::new(|options| options.memory_bytes = 100 * MEGABYTE) else {
        return;
    };
    if sandbox.sandbox.lack_of_cgroups().is_none() {
        return;
    }
    let fill = perl(
        "use Socket; for my $child (1..20) { next if fork; for (1..100) { socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die $!; \
         $a->blocking(0); 1 while syswrite($a, \"a\" x 100_000); push @all, $a, $b; } sleep 9 } wait for 1..20; \
         print \"had it\"",
    );
    let told = sandbox.shell(&format!("{fill}; echo done")).await;
    assert_eq!(told["stopped"], "it took more than 100 MB of memory", "{told}");
    let connect = perl(
        "use Socket; for (AF_UNIX, AF_INET) { die if socket(my $s, $_, SOCK_STREAM, 0); } print \"none\"",
    );
    assert_eq!(sandbox.print(&connect).await, "none");
    let pair = perl(
        "use Socket; socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or die $!; print \"pair\"",
    );
    assert_eq!(sandbox.print(&pair).await, "pair");
}

#[tokio::test]
async fn namespaces_and_mounts_cannot_be_made() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    for command in [
        "unshare -U true",
        "unshare -Urm mount -t tmpfs none /workspace",
        "unshare -n true",
        "mount -t tmpfs none /workspace",
        "umount /workspace",
        "setpriv --reuid=0 true",
    ] {
        let told = sandbox.shell(command).await;
        assert_ne!(told["exit_code"], 0, "{command}: {told}");
    }
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID, libc::CLONE_NEWNET] {
        let flags = flag | libc::SIGCHLD;
        let script = format!(
            "my $id = syscall({}, {flags}, 0, 0, 0, 0); exit 9 if !$id; print $!",
            libc::SYS_clone
        );
        assert_eq!(sandbox.print(&perl(&script)).await, "Function not implemented", "{flag:x}");
    }
}

#[tokio::test]
async fn dangerous_system_calls_are_missing() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    for (name, number) in [
        ("bpf", libc::SYS_bpf),
        ("clone3", libc::SYS_clone3),
        ("io_setup", libc::SYS_io_setup),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("keyctl", libc::SYS_keyctl),
        ("mount_setattr", libc::SYS_mount_setattr),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("ptrace", libc::SYS_ptrace),
        ("setns", libc::SYS_setns),
        ("unshare", libc::SYS_unshare),
        ("userfaultfd", libc::SYS_userfaultfd),
    ] {
        let script = format!("syscall({number}, 0, 0, 0, 0, 0, 0); print $!");
        assert_eq!(sandbox.print(&perl(&script)).await, "Function not implemented", "{name}");
    }
    // The same calls by the numbers of other architectures.
    let x32 = perl(&format!("syscall({} | 0x40000000, 0, 0); print $!", libc::SYS_unshare));
    assert_eq!(sandbox.print(&x32).await, "Function not implemented");
    assert_eq!(
        sandbox.print("(true & wait); perl -e 'fork or exit 3; wait; print $? >> 8'").await,
        "3"
    );
}

#[tokio::test]
async fn short_commands_cannot_fill_the_disk() {
    let Some(sandbox) = TestSandbox::new(|options| options.workspace_bytes = 5 * MEGABYTE) else {
        return;
    };
    let mut refused = 0;
    for round in 0..20 {
        let command = format!("for i in 1 2; do head -c 1500000 /dev/zero > f{round}-$i; done");
        match sandbox.call("run_command", json!({ "command": command })).await {
            Ok(_) => assert_eq!(refused, 0),
            Err(error) => {
                assert!(error.message().contains("the workspace is full"), "{}", error.message());
                refused += 1;
            }
        }
    }
    assert!(refused >= 16, "{refused}");
    assert!(bytes_on_disk(&sandbox) < 9 * MEGABYTE, "{}", bytes_on_disk(&sandbox));
    // No file can become larger than the remaining space.
    sandbox.call("remove_files", json!({ "path": "." })).await.unwrap();
    sandbox.print("head -c 3000000 /dev/zero > a").await;
    sandbox.shell("head -c 4000000 /dev/zero > b").await;
    assert!(bytes_on_disk(&sandbox) < 5 * MEGABYTE + 100_000, "{}", bytes_on_disk(&sandbox));
}

#[tokio::test]
async fn no_command_starts_when_less_than_a_workspace_is_free() {
    let Some(sandbox) = TestSandbox::new(|options| options.workspace_bytes = 1 << 60) else {
        return;
    };
    let refused = sandbox.refused("run_command", json!({ "command": "true" })).await;
    assert!(refused.contains("the disk of the workspaces is almost full"), "{refused}");
}

#[tokio::test]
async fn files_below_the_longest_path_count_and_can_be_removed() {
    let Some(sandbox) = TestSandbox::new(|options| options.workspace_bytes = 30 * MEGABYTE) else {
        return;
    };
    let deep = perl(
        "my $name = \"d\" x 200; for (1..40) { mkdir $name; chdir $name or die $!; } \
         open(F, \">\", \"f\") or die $!; print F \"a\" x 20_000_000; close F; print \"nested\"",
    );
    assert_eq!(sandbox.print(&deep).await, "nested");
    let told = sandbox.shell("head -c 20000000 /dev/zero > g").await;
    assert!(
        told["exit_code"] != 0 && bytes_on_disk(&sandbox) < 31 * MEGABYTE,
        "{told} {}",
        bytes_on_disk(&sandbox)
    );
    // Too many levels count as a full workspace.
    let deeper = perl("for (1..3000) { mkdir \"d\"; chdir \"d\" or die $!; } print \"nested\"");
    sandbox.call("remove_files", json!({ "path": "." })).await.unwrap();
    sandbox.shell(&deeper).await;
    assert!(
        sandbox
            .refused("run_command", json!({ "command": "ls" }))
            .await
            .contains("levels of folders")
    );
    sandbox.call("remove_files", json!({ "path": "." })).await.unwrap();
    sandbox.print("true").await;
}

#[tokio::test]
async fn unlinked_files_that_are_open_count() {
    let limits = |options: &mut agui_server::tools::sandbox::SandboxOptions| {
        options.workspace_bytes = 5 * MEGABYTE;
        options.timeout = Duration::from_secs(20);
    };
    let Some(sandbox) = TestSandbox::new(limits) else { return };
    let begin = Instant::now();
    let hide = perl(
        "for my $i (1..200) { open($f[$i], \">\", \"f\") or die $!; unlink \"f\"; syswrite($f[$i], \"a\" x 1_000_000); \
         select(undef, undef, undef, 0.05); } sleep 30",
    );
    let told = sandbox.shell(&hide).await;
    assert_eq!(told["stopped"], "the workspace had more than 5 MB", "{told}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    // The processes ended with the command.
    assert!(bytes_on_disk(&sandbox) < MEGABYTE);
    sandbox.print("true").await;
}

#[tokio::test]
async fn commands_wait_when_the_server_runs_its_maximum() {
    let Some(sandbox) = TestSandbox::new(|options| options.max_commands = 1) else { return };
    let mut first = Box::pin(sandbox.call_on(
        "a",
        "run_command",
        json!({ "command": "touch begun; sleep 20" }),
    ));
    let begun = async {
        let marked = || walk(sandbox.folder.path()).iter().any(|name| name == "begun");
        while !marked() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! { told = &mut first => panic!("{told:?}"), () = begun => {} }
    let mut second =
        Box::pin(sandbox.call_on("b", "run_command", json!({ "command": "echo ran" })));
    tokio::select! {
        biased;
        told = &mut second => panic!("{told:?}"),
        () = tokio::time::sleep(Duration::from_millis(300)) => {}
    }
    drop(first);
    assert!(second.await.unwrap().contains("ran"));
}

#[tokio::test]
async fn commands_of_one_principal_leave_places_for_another() {
    let Some(sandbox) = TestSandbox::new(|options| options.max_commands = 2) else { return };
    let sleeping = || {
        let command = json!({ "command": "touch begun; sleep 20" });
        Box::pin(sandbox.call_of(Some("ann"), "a", "run_command", command))
    };
    let mut of_ann = futures::future::join_all((0..5).map(|_| sleeping()));
    let of_bob = async {
        while !walk(sandbox.folder.path()).iter().any(|name| name == "begun") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        sandbox.call_of(Some("bob"), "b", "run_command", json!({ "command": "echo ran" })).await
    };
    tokio::select! {
        told = &mut of_ann => panic!("{told:?}"),
        told = tokio::time::timeout(Duration::from_secs(10), of_bob) => assert!(told.unwrap().unwrap().contains("ran")),
    }
}

/// Returns the names of all files and folders.
fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.flat_map(|entry| {
        let mut names = walk(&entry.path());
        names.push(entry.file_name().to_string_lossy().into_owned());
        names
    });
    names.collect()
}

#[tokio::test]
async fn commands_of_one_thread_run_together_and_see_no_other_thread() {
    let Some(sandbox) = TestSandbox::new(|_| {}) else { return };
    let on = |thread: &'static str, command: &'static str| {
        sandbox.call_on(thread, "run_command", json!({ "command": command }))
    };
    // Each command waits for the other's file.
    let (one, two, stranger) = tokio::join!(
        on(
            "t",
            "touch one; for i in $(seq 500); do [ -e two ] && break; sleep 0.01; done; [ -e two ] && echo both"
        ),
        on(
            "t",
            "touch two; for i in $(seq 500); do [ -e one ] && break; sleep 0.01; done; [ -e one ] && echo both"
        ),
        on("u", "sleep 0.2; ls -a / /workspace; ls /proc | grep -c \"^[0-9]\""),
    );
    assert!(one.unwrap().contains("both") && two.unwrap().contains("both"));
    let stranger = stranger.unwrap();
    assert!(!stranger.contains("one") && !stranger.contains("two"), "{stranger}");
}

/// The results of one run in which the model makes these calls.
async fn results(server: &TestServer, provider: &Provider, calls: &[(&str, Value)]) -> Vec<String> {
    for (index, (tool, arguments)) in calls.iter().enumerate() {
        provider.answer(Answer::openai(&[call(&format!("c{index}"), tool, arguments)]));
    }
    provider.answer(Answer::openai(&[chunk(json!({ "content": "Done." }))]));
    let frames = server.ask(AGENT, &on("t", "go on")).await;
    let results = named(&frames, "tool_result");
    assert_eq!(results.len(), calls.len(), "{frames:?}");
    results.iter().map(|result| result["content"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn folders_that_the_server_cannot_read_count_as_full() {
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    if is_skipped() || id != b"0\n" {
        return;
    }
    let provider = Provider::start().await;
    let server = TestServer::as_nobody(&provider, "[sandbox]\nworkspace_mb = 5\nmemory_mb = 100\n");
    let hide = "mkdir -p p/q; for i in 1 2 3; do head -c 4000000 /dev/zero > p/q/f$i; done; chmod 000 p; echo hidden";
    let run = |command: &str| ("run_command", json!({ "command": command }));
    let memfd =
        perl(&format!("my $n = \"m\"; syscall({}, $n, 0); print $!", libc::SYS_memfd_create));
    let clear = ("remove_files", json!({ "path": "." }));
    let calls = [
        run("unshare -U true || echo no"),
        run(&memfd),
        run(hide),
        run("echo more"),
        clear,
        run("ls; echo empty"),
    ];
    let told = results(&server, &provider, &calls).await;
    assert!(told[0].contains("no\\n"), "{told:?}");
    assert!(told[1].contains("not implemented"), "{told:?}");
    assert!(told[3].contains("the workspace is full") && !told[3].contains("stdout"), "{told:?}");
    assert_eq!(told[4], "Removed.");
    assert!(told[5].contains("\"stdout\":\"empty\\n\""), "{told:?}");
}

#[tokio::test]
async fn descriptors_that_the_server_inherited_are_closed_for_commands() {
    if is_skipped() {
        return;
    }
    let provider = Provider::start().await;
    let data = tempfile::tempdir().unwrap();
    let secret = data.path().join("secret");
    std::fs::write(&secret, "key").unwrap();
    let config = data.path().join("server.toml");
    std::fs::write(&config, TestServer::worker(&provider, "")).unwrap();
    let config = config.to_str().unwrap().to_owned();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "exec 9< \"$1\"; shift; exec \"$@\"", "sh"]).arg(&secret).arg(BINARY);
    let server = TestServer::new(Process::launch(command, data, &["--config", &config], &[]), None);
    let open = format!("/proc/{}/fd/9", server.process.child.id());
    assert_eq!(std::fs::read_to_string(open).unwrap(), "key", "the server has the descriptor");
    let calls =
        [("run_command", json!({ "command": "cat <&9; cat /proc/self/fd/9; ls /proc/1/fd" }))];
    let told = results(&server, &provider, &calls).await;
    assert!(!told[0].contains("key") && told[0].contains("ad"), "{told:?}");
}
