//! The TOML in README.md, README.zh-CN.md and docs/*.md is valid: configurations and scripts. Links between these
//! documents lead to headings.
//!
//! `agui-server check` runs on each fenced block marked `toml`, except for scripts, which are parsed here. The Rust
//! blocks are doctests of the library (`src/lib.rs`). Other blocks are skipped.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use agui_server::agents::Script;

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
        let body: Vec<_> = lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```").collect();
        if mark == "toml" {
            blocks.push(TomlBlock { place: format!("{}:{number}", document.display()), text: body.join("\n") });
        }
    }
    blocks
}

/// Returns the upper-case words of a block, among them the names of environment variables.
fn upper_case_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter(|word| word.len() > 3 && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
}

/// Runs `agui-server check` on a block. Sets all environment variables and writes all scripts that the block names.
fn check(block: &TomlBlock) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("document.toml");
    fs::write(&file, &block.text).unwrap();
    for line in block.text.lines().filter_map(|line| line.strip_prefix("script = \"")) {
        let script = folder.path().join(line.split('"').next().unwrap());
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(script, "[[reply]]\nplay = [{ text = \"Hello\" }]").unwrap();
    }
    let secrets = upper_case_words(&block.text).map(|name| (name, "0123456789abcdef0123456789abcdef"));
    let output = Command::new(BINARY).arg("check").arg("--config").arg(&file).envs(secrets).output().unwrap();
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

#[test]
fn every_toml_block_of_the_documentation_is_valid() {
    let blocks: Vec<_> = documents().iter().flat_map(|document| toml_blocks(document)).collect();
    assert!(blocks.len() >= 4, "only {} blocks were found", blocks.len());
    let faults: Vec<_> = blocks
        .iter()
        .filter_map(|block| {
            let checked = if block.text.contains("[[reply]]") {
                Script::parse(&block.text).map(drop).map_err(|error| error.message().to_owned())
            } else {
                check(block)
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
    headings.map(|heading| anchor(heading.trim_start_matches('#').trim()).replace(' ', "-")).collect()
}

#[test]
fn links_between_documents_lead_to_headings() {
    let mut broken = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()?.split_once('#'));
        for (path, anchor) in links.filter(|(path, _)| !path.contains("://")) {
            let target = if path.is_empty() { document.clone() } else { document.with_file_name(path) };
            let target = fs::read_to_string(&target).unwrap_or_default();
            if !anchors(&target).contains(&anchor.to_owned()) {
                broken.push(format!("{}: {path}#{anchor}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}
