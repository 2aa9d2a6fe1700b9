//! The recordings of a folder, as lines of JSON.

use std::{fs, path::Path};

use serde_json::Value;

use super::running::eventually;

/// Returns the names of the files in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Waits until the folder has this number of recordings of ended runs. Returns their lines.
pub async fn recordings(folder: &Path, number: usize) -> Vec<Vec<Value>> {
    let whole =
        || names(folder).into_iter().filter(|name| name.ends_with(".jsonl")).collect::<Vec<_>>();
    eventually("the recordings are written", || whole().len() >= number).await;
    let whole = whole();
    assert_eq!(whole.len(), number, "{whole:?}");
    whole.iter().map(|name| lines(&fs::read_to_string(folder.join(name)).unwrap())).collect()
}

pub fn lines(text: &str) -> Vec<Value> {
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
