//! `/attach`: a file of this machine as a part of the next message.

use std::{error::Error, fs, path::PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use crate::server::cli::{printable::printable_line, target::RunTarget};
use agui_agent::files::shown_type;
use agui_protocol::{ContentPart, JsonObject, MediaPart, PartSource};

/// The largest file that is read. A server with files has a lower limit of its own.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// The largest file in a message. Base64 makes it a third longer, and a request may have 10 MiB by default.
const MAX_INLINE_BYTES: u64 = 6 << 20;

/// The answer of a server that has stored a file.
#[derive(Deserialize)]
struct StoredFile {
    part: ContentPart,
}

/// Reads a file and uploads it. A server without files gets it in the message. Returns the part and the line that is shown.
///
/// # Errors
/// The file cannot be read, or is too large.
pub(super) async fn attach(
    path: &str,
    target: &RunTarget,
) -> Result<(ContentPart, String), Box<dyn Error>> {
    let path = path_of(path);
    let shown = printable_line(&path.to_string_lossy());
    let bytes = block_in_place(|| read(&path)).map_err(|problem| format!("{shown}: {problem}"))?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let size = bytes.len() as u64;
    let is_text = std::str::from_utf8(&bytes).is_ok();
    let media_type = shown_type(&bytes, "");
    let media_type =
        media_type.unwrap_or(if is_text { "text/plain" } else { "application/octet-stream" });
    let note = format!("{}, {}", printable_line(&name), size_text(size));
    if let Some(StoredFile { mut part }) = target.upload(&bytes, media_type, &name).await? {
        // The server may have the bytes under another name.
        if let Some(media) = part.media_mut() {
            media.metadata = Some(json!({ "filename": name }));
        }
        return Ok((part, note));
    }
    if size > MAX_INLINE_BYTES {
        let limit = size_text(MAX_INLINE_BYTES);
        return Err(format!(
            "{note}: too large, because this server has no files and {limit} fit into a message"
        )
        .into());
    }
    let source =
        PartSource::Data { value: STANDARD.encode(bytes), mime_type: media_type.to_owned() };
    let media = MediaPart { metadata: Some(json!({ "filename": name })), ..source.into() };
    Ok((ContentPart::media(media_type, media), note))
}

/// Returns the line for a file that an agent hands over.
pub(super) fn handed_over(content: &JsonObject) -> String {
    let text = |name: &str| content.get(name).and_then(Value::as_str);
    let name = text("name").or(text("mimeType")).unwrap_or("file");
    let size = content.get("bytes").and_then(Value::as_u64).map(size_text);
    // A `data:` URL has the whole file.
    let link = text("problem").or(text("url").filter(|url| !url.starts_with("data:")));
    let parts = [Some(name.to_owned()), size, link.map(str::to_owned)];
    printable_line(&format!("file: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
}

/// Reads a path as people type, paste or drop it: in quotation marks, or below `~`.
fn path_of(typed: &str) -> PathBuf {
    let unquoted =
        ['"', '\''].into_iter().find_map(|mark| typed.strip_prefix(mark)?.strip_suffix(mark));
    let path = unquoted.unwrap_or(typed);
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => path.into(),
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, String> {
    let file = fs::metadata(path).map_err(|error| error.to_string())?;
    match file.len() {
        _ if file.is_dir() => Err("a directory cannot be attached".to_owned()),
        // Reading a pipe or a device may never end.
        _ if !file.is_file() => Err("expected a regular file".to_owned()),
        0 => Err("the file is empty".to_owned()),
        MAX_FILE_BYTES.. => Err(format!("{} are too many", size_text(file.len()))),
        _ => fs::read(path).map_err(|error| error.to_string()),
    }
}

/// Returns a number of bytes as people read it.
fn size_text(bytes: u64) -> String {
    let (mut value, mut units) = (bytes as f64, ["KB", "MB", "GB"].into_iter());
    let mut unit = "B";
    while value >= 999.5 {
        let Some(larger) = units.next() else { break };
        (value, unit) = (value / 1000.0, larger);
    }
    if unit == "B" || value >= 9.95 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, text) in [
            (7, "7 B"),
            (999, "999 B"),
            (2400, "2.4 KB"),
            (52_311, "52 KB"),
            (999_600, "1.0 MB"),
            (4 << 30, "4.3 GB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }

    #[test]
    fn paths_are_read_as_they_are_typed() {
        assert_eq!(path_of("a b.png"), PathBuf::from("a b.png"));
        assert_eq!(path_of("'/tmp/a b.png'"), PathBuf::from("/tmp/a b.png"));
        assert_eq!(path_of("\"a\""), PathBuf::from("a"));
        assert!(!path_of("~/a").starts_with("~"));
    }

    #[test]
    fn a_file_of_an_agent_is_a_line() {
        let line = |content: Value| handed_over(content.as_object().unwrap());
        let chart = json!({ "name": "a\u{1b}.png", "mimeType": "image/png", "bytes": 2400, "url": "http://h/files/1" });
        assert_eq!(line(chart), "file: a␛.png, 2.4 KB, http://h/files/1");
        assert_eq!(
            line(json!({ "mimeType": "text/csv", "bytes": 1, "url": "data:text/csv;base64,YQ==" })),
            "file: text/csv, 1 B"
        );
        assert_eq!(line(json!({ "name": "a", "problem": "too large" })), "file: a, too large");
    }
}
