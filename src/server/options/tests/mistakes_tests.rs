//! The usual mistakes, and several in one file.

use super::*;

#[test]
fn what_people_write_by_mistake_is_answered_with_what_to_write() {
    const ABOVE: &str = "`default_agent` is below the first table, and is read as a part of the table above it: move it above the \
                         first line in brackets";
    for (text, expected) in [
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"mistral\"\nmodel = \"m\"",
            "my.toml:3:12: agents.x.provider: a provider is a protocol, and \"mistral\" has that of provider = \"openai\", with \
             base_url = \"https://api.mistral.ai/v1\"\n",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"opnai\"",
            "my.toml:3:12: unknown value `opnai`; did you mean `openai`?",
        ),
        ("[agents.x]\nkind = \"echo\"\ndefault_agent = \"x\"", &format!("my.toml:3:1: {ABOVE}\n")),
        ("[server]\ndefault_agent = \"x\"", &format!("my.toml:2:1: {ABOVE}\n")),
        ("[agents]\ndefault_agent = \"x\"", &format!("my.toml:2:17: {ABOVE}\n")),
        ("[mcp]\ndefault_agent = \"x\"", &format!("my.toml:2:17: {ABOVE}\n")),
        ("[tools.a]\nkind = \"http\"\ndefault_agent = \"x\"", &format!("my.toml:3:1: {ABOVE}\n")),
        (
            "[mcp.a]\ncommand = \"npx -y server-files /tmp\"",
            "my.toml:2:11: expected a list, found a text; a list is [\"npx\", \"-y\", \"server-files\", \"/tmp\"]\n",
        ),
        (
            "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\napi_key_command = \"pass llm\"",
            "my.toml:5:19: expected a list, found the text \"pass llm\"; a list is [\"pass\", \"llm\"]\n",
        ),
        (
            "[server]\nlisten = 9000",
            "my.toml:2:10: the address is missing: write \"127.0.0.1:9000\", or \"0.0.0.0:9000\" to be reached from other machines\n",
        ),
        (
            "[metrics]\nlisten = 9000",
            "my.toml:2:10: expected an address and a port, such as \"127.0.0.1:9090\", found 9000",
        ),
    ] {
        let error = refused(text);
        assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
    }
    let flag = vec![("--listen", "server.listen", "8080".to_owned())];
    let error = load_with("", &[], flag).unwrap_err();
    assert!(
        error.starts_with("--listen: the address is missing: write \"127.0.0.1:8080\""),
        "{error}"
    );
}

#[test]
fn all_errors_of_a_file_are_reported() {
    let read = refused(
        "[server]\nlisen = 1\n[runs]\nmax_concurrent = \"many\"\n[agents.x]\nkind = \"scrpt\"\n[agents.y]\n",
    );
    let lines: Vec<_> =
        read.lines().filter(|line| line.starts_with("my.toml:")).map(|line| &line[..11]).collect();
    assert_eq!(lines, ["my.toml:2:1", "my.toml:4:1", "my.toml:6:8", "my.toml:7:9"], "{read}");
    let count =
        |text: &str| refused(text).lines().filter(|line| line.starts_with("my.toml:")).count();
    assert_eq!(
        count(
            "[runs]\nmax_concurrent = 0\n[record]\nmax_files = 0\n[cors]\nallow_origins = [\"x\"]"
        ),
        3
    );
    assert_eq!(count("[runs]\nmax_concurrent = 0\n[record]\nmax_files = 0\nmax_file_bytes = 0"), 3);
    assert_eq!(
        count(
            "[mcp.a]\n[tools.\"b c\"]\nkind = \"http\"\ndescription = \"d\"\nurl = \"https://h\"\n[mcp.c]\n"
        ),
        3
    );
    assert_eq!(
        count("[server]\nlisen = 1\ndrain_secs = -1\n[tools.a]\n[tools.b]\n[srver]\na = 1\nb = 2"),
        5
    );
    assert_eq!(count("[named_events]\nchat = \"a\"\nagent = \"b\""), 2);
}

#[test]
fn what_can_be_read_of_a_file_is_checked_with_the_rest() {
    let lines = |text: &str| {
        let error = refused(text);
        let lines: Vec<_> = error
            .lines()
            .filter_map(|line| line.strip_prefix("my.toml:")?.get(..4).map(str::to_owned))
            .collect();
        (lines, error)
    };
    let agent = "[agents.a]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\n";
    let text = format!(
        "[server]\nlisen = 1\n[runs]\nmax_concurrent = 0\n{agent}[agents.b]\nkind = \"script\"\n"
    );
    let (found, error) = lines(&text);
    assert_eq!(found, ["2:1:", "9:9:", "5:9:", "4:1:"], "{error}");
    // The address is not checked, because `[auth]` cannot be read.
    let (found, error) =
        lines("[auth]\nmode = \"jwd\"\n[server]\nlisten = \"0.0.0.0:80\"\n[mcp.a]\n");
    assert_eq!(found, ["2:8:", "5:6:"], "{error}");
    // A variable may set what the file lacks.
    let file = format!("[server]\nlisen = 1\n{agent}");
    let error = load_with(&file, &[("AGUI_AGENTS__A__API_KEY_ENV", "K")], vec![]).unwrap_err();
    assert_eq!(error.matches("my.toml:").count(), 1, "{error}");
}
