//! The TOML in README.md, README.zh-CN.md and docs/*.md is valid: configurations and scripts. Links between these
//! documents lead to headings.
//!
//! `agui-server check` runs on each fenced block marked `toml`, except for scripts, which are parsed here. The Rust
//! blocks are doctests of the library (`src/lib.rs`). Other blocks are skipped.
//!
//! These blocks and `config/*.toml` also fit the JSON Schema that `agui-server schema` prints, which accepts and refuses
//! what `check` does.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use agui_agents::script::Script;
use jsonschema::Validator;
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_agui-server");

struct TomlBlock {
    /// File and line, for messages.
    place: String,
    text: String,
}

fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    [root.join("README.md"), root.join("README.zh-CN.md")].into_iter().chain(docs).collect()
}

fn toml_blocks(document: &Path) -> Vec<TomlBlock> {
    let text = fs::read_to_string(document).unwrap();
    let mut blocks = Vec::new();
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        let Some(mark) = line.trim_start().strip_prefix("```") else { continue };
        let body: Vec<_> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```").collect();
        if mark == "toml" {
            blocks.push(TomlBlock {
                place: format!("{}:{number}", document.display()),
                text: body.join("\n"),
            });
        }
    }
    blocks
}

/// Returns the upper-case words of a block, among them the names of environment variables.
fn upper_case_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| {
        word.len() > 3
            && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    })
}

/// Runs `agui-server check` on a block. Sets all environment variables and writes all scripts that the block names.
fn check(block: &TomlBlock) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("document.toml");
    fs::write(&file, &block.text).unwrap();
    for line in block.text.lines().filter_map(|line| line.strip_prefix("script = \"")) {
        let script = folder.path().join(line.split('"').next().unwrap());
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(script, "[[answer]]\nplay = [{ text = \"Hello\" }]").unwrap();
    }
    let secrets = upper_case_words(&block.text)
        .map(|name| (name, format!("{name}-0123456789abcdef0123456789abcdef")));
    let output = Command::new(BINARY)
        .arg("check")
        .arg("--config")
        .arg(&file)
        .envs(secrets)
        .output()
        .unwrap();
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    // If commands cannot be isolated, tests/run.sh sets the variable and reports it.
    let is_skipped = std::env::var_os("AGUI_SKIP_SANDBOX").is_some()
        && problem.contains("commands cannot be isolated");
    if output.status.success() || is_skipped { Ok(()) } else { Err(problem) }
}

/// Returns the schema that the command prints.
fn printed_schema() -> Validator {
    let output = Command::new(BINARY).arg("schema").output().unwrap();
    assert!(output.status.success());
    let committed =
        fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schema.json")).unwrap();
    assert!(output.stdout == committed, "`agui-server schema` does not print config/schema.json");
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
}

/// Checks a configuration as an editor does.
fn check_schema(schema: &Validator, text: &str) -> Result<(), String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let value = serde_json::to_value(table).unwrap();
    let faults: Vec<_> = schema
        .iter_errors(&value)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(format!("does not fit the schema: {}", faults.join("; ")))
    }
}

#[test]
fn every_example_configuration_names_its_schema_and_fits_it() {
    let schema = printed_schema();
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("config")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    assert!(files.len() > 10, "{files:?}");
    let deployed = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/kubernetes/base/config.toml");
    for file in files.into_iter().chain([deployed]) {
        let text = fs::read_to_string(&file).unwrap();
        let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema "));
        let named = named.unwrap_or_else(|| panic!("{} does not name its schema", file.display()));
        assert!(
            file.with_file_name(named).canonicalize().unwrap().ends_with("config/schema.json"),
            "{named}"
        );
        check_schema(&schema, &text).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()));
    }
}

const MODEL: &str = "[agents.x]\nkind = \"llm\"\nprovider = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:9\"\n";
const REMOTE: &str = "[agents.x]\nkind = \"remote\"\nurl = \"http://127.0.0.1:9\"\n";
const TOKENS: &str = "[auth]\nmode = \"jwt\"\n[auth.jwt]\nsecret_env = \"SECRET\"\n";
const TOOL: &str =
    "[tools.x]\nkind = \"http\"\ndescription = \"d\"\nurl = \"http://127.0.0.1:9/{a}\"\n";
const MCP: &str = "[mcp.x]\nurl = \"http://127.0.0.1:9\"\n";

fn as_block(text: String) -> TomlBlock {
    TomlBlock { place: String::new(), text }
}

#[test]
fn the_schema_and_check_accept_every_form_of_a_value() {
    let schema = printed_schema();
    for (start, more) in [
        ("[server]\n", "listen = \"[::1]:8080\"\nkeep_alive_secs = 0"),
        ("[runs]\n", "max_seconds = 0\non_disconnect = \"continue\""),
        ("[retention]\n", "thread_days = 0\nlog_hours = 48"),
        ("[store]\n", "url = \"memory:\""),
        ("[prices]\n", "\"gpt-4o\" = { input = 1, output = 2.5 }"),
        (TOKENS, "audience = \"a\""),
        (TOKENS, "audience = [\"a\", \"b\"]\nalgorithms = [\"HS256\"]"),
        (MODEL, "temperature = 1\nthinking = true\nprofile = \"vllm\""),
        (
            MODEL,
            "thinking = \"adaptive\"\nprofile = { base = \"vllm\", token_limit = \"max_completion_tokens\" }",
        ),
        (
            MODEL,
            "tool_choice = \"none\"\nextra_body = { a = [1, { b = false }] }\nheaders = { X-A = \"a\" }",
        ),
        (REMOTE, "headers_env = { X-A = \"SECRET\" }\npass_headers = [\"x-b\"]"),
        (TOOL, "method = \"PATCH\"\napproval = \"always\""),
        (TOOL, "approval = { unless = { a = \"^/tmp/\" } }"),
        (TOOL, "headers = { A = \"a\", B = { env = \"SECRET\", prefix = \"Bearer \" } }"),
        (
            TOOL,
            "headers_from = { A = \"principal\", B = { from = \"claim:b\", required = true }, C = \"header:c\" }",
        ),
        (
            MCP,
            "approval = \"annotations\"\napproval_of = { a = \"never\", b = { when = { c = \"d\" } } }",
        ),
        (
            MCP,
            "oauth = { token_url = \"https://a.b\", client_id = \"c\", client_secret_env = \"SECRET\" }",
        ),
        ("[mcp.x]\n", "command = [\"a\"]\nenv = { A = \"a\" }\ntimeout_secs = 5"),
        ("[sandbox]\n", "approval_of = { run_command = \"always\" }\nmemory_mb = 16"),
    ] {
        let text = format!("{start}{more}\n");
        check_schema(&schema, &text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        check(&as_block(text.clone())).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    }
}

#[test]
fn the_schema_and_check_refuse_the_same_faults() {
    let schema = printed_schema();
    for (start, fault) in [
        // An unknown name.
        ("", "[servr]"),
        ("[server]\n", "lisen = \"127.0.0.1:1\""),
        (MODEL, "modell = \"m\""),
        (MODEL, "context = { size = 1000 }"),
        (MODEL, "profile = { limit = \"max_tokens\" }"),
        (TOOL, "metod = \"GET\""),
        (TOOL, "headers = { A = { env = \"SECRET\", suffix = \"\" } }"),
        (TOOL, "headers_from = { A = { from = \"principal\", needed = true } }"),
        (MCP, "aproval = \"never\""),
        ("[prices]\n", "m = { input = 1, output = 1, cached = 1 }"),
        // A wrong type.
        ("[server]\n", "listen = 8080"),
        ("[server]\n", "drain_secs = \"10\""),
        ("[server]\n", "drain_secs = 1.5"),
        ("[server]\n", "allowed_hosts = \"example.com\""),
        ("[cors]\n", "allow_localhost = \"yes\""),
        (MODEL, "tools = \"current_time\""),
        (MODEL, "response_schema = \"text\""),
        (MODEL, "extra_body = [1]"),
        (MODEL, "metadata = { a = 1 }"),
        (MODEL, "profile = 7"),
        (TOKENS, "audience = 7"),
        (TOOL, "approval = { unless = { a = 1 } }"),
        (MCP, "elicitation = 1"),
        // A wrong value.
        ("[server]\n", "listen = \"nowhere\""),
        ("[runs]\n", "on_disconnect = \"stop\""),
        ("[log]\n", "format = \"xml\""),
        ("[auth]\n", "mode = \"jwd\""),
        ("[store]\n", "url = \"mysql://h/d\""),
        ("[agents.x]\n", "kind = \"bot\""),
        (MODEL, "thinking = \"deep\""),
        (MODEL, "context = { policy = \"forget\" }"),
        (MODEL, "profile = \"nonesuch\""),
        (MODEL, "api = \"graphql\""),
        (TOKENS, "algorithms = [\"none\"]\naudience = []"),
        (TOOL, "method = \"TRACE\""),
        (TOOL, "approval = \"annotations\""),
        (TOOL, "approval = { unless = {} }"),
        (TOOL, "headers_from = { A = \"cookie:x\" }"),
        (MCP, "approval_of = { a = \"sometimes\" }"),
        ("[sandbox]\n", "approval_of = { rm = \"always\" }"),
        // A number out of range.
        ("[runs]\n", "max_concurrent = 0"),
        ("[runs]\n", "max_seconds = -1"),
        ("[server]\n", "max_connections = 0"),
        ("[server]\n", "max_streams = 0"),
        ("[retention]\n", "thread_days = -1"),
        ("[limits]\n", "concurrent_runs = -1"),
        ("[limits]\n", "share_percent = 101"),
        ("[threads]\n", "lease_secs = 1"),
        ("[record]\n", "max_files = 0"),
        ("[files]\n", "max_file_bytes = 0"),
        ("[files]\n", "url_days = 0"),
        ("[server]\n", "public_url = \"chat.example.com\""),
        ("[sandbox]\n", "memory_mb = 8"),
        ("[prices]\n", "m = { input = -1, output = 1 }"),
        (MODEL, "max_steps = 0"),
        (MODEL, "max_tokens = 4294967296"),
        (MODEL, "temperature = 2.5"),
        (MODEL, "context = { window = 100 }"),
        (TOOL, "timeout_secs = 0"),
        // Something is missing, or does not belong there.
        ("[agents.x]\n", "description = \"d\""),
        ("[agents.x]\n", "kind = \"script\""),
        ("[agents.x]\n", "kind = \"echo\"\nmodel = \"m\""),
        ("[agents.x]\n", "kind = \"llm\"\nprovider = \"openai\""),
        ("[agents.x]\n", "kind = \"replay\""),
        ("[agents.\"a/b\"]\n", "kind = \"echo\""),
        (MODEL, "dir = \"recordings\""),
        ("[agents.x]\n", "kind = \"llm\"\nprovider = \"replay\"\nmodel = \"m\""),
        (REMOTE, "max_steps = 1"),
        ("[auth]\nmode = \"api_key\"\n", "api_keys = [{ name = \"a\" }]"),
        (
            "[auth]\nmode = \"api_key\"\n",
            "api_keys = [{ name = \"a\", env = \"SECRET\", sha256 = \"00\" }]",
        ),
        ("[tools.x]\n", "kind = \"http\"\ndescription = \"d\""),
        ("[mcp.x]\n", "prefix = \"x_\""),
        (MCP, "command = [\"a\"]"),
        (MCP, "env = { A = \"a\" }"),
        (MCP, "oauth = { token_url = \"https://a.b\", client_id = \"c\" }"),
        ("[prices]\n", "m = { input = 1 }"),
    ] {
        let text = format!("{start}{fault}\n");
        assert!(check_schema(&schema, &text).is_err(), "the schema accepts\n{text}");
        assert!(check(&as_block(text.clone())).is_err(), "`agui-server check` accepts\n{text}");
    }
}

#[test]
fn every_toml_block_of_the_documentation_is_valid() {
    let blocks: Vec<_> = documents().iter().flat_map(|document| toml_blocks(document)).collect();
    assert!(blocks.len() >= 4, "only {} blocks were found", blocks.len());
    let schema = printed_schema();
    let faults: Vec<_> = blocks
        .iter()
        .filter_map(|block| {
            let checked = if block.text.contains("[[answer]]") {
                Script::parse(&block.text).map(drop).map_err(|error| error.to_string())
            } else {
                check(block).and_then(|()| check_schema(&schema, &block.text))
            };
            checked.err().map(|fault| format!("{}: {fault}", block.place))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the anchors that GitHub makes of a document's headings.
fn anchors(document: &str) -> Vec<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let is_kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    let anchor = |heading: &str| heading.to_lowercase().chars().filter(is_kept).collect::<String>();
    headings
        .map(|heading| anchor(heading.trim_start_matches('#').trim()).replace(' ', "-"))
        .collect()
}

#[test]
fn links_between_documents_lead_to_headings() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let links =
            text.split("](").skip(1).filter_map(|rest| rest.split(')').next()?.split_once('#'));
        for (path, anchor) in links.filter(|(path, _)| !path.contains("://")) {
            let target =
                if path.is_empty() { document.clone() } else { document.with_file_name(path) };
            let target = fs::read_to_string(&target).unwrap_or_default();
            if !anchors(&target).contains(&anchor.to_owned()) {
                broken.push(format!("{}: {path}#{anchor}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
