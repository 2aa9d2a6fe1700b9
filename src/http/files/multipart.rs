//! A file in a form: `multipart/form-data` (RFC 7578), which `<form>` and `FormData` send.

use bytes::Bytes;
use memchr::memmem::find;

use super::disposition::file_name;

/// A file of a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FormFile {
    pub(crate) bytes: Bytes,
    pub(crate) media_type: String,
    /// As the client calls it, such as `recording.webm`.
    pub(crate) name: String,
}

/// Returns the first file of a form; `None` if it has none, or is cut off.
pub(super) fn first_file(body: &Bytes, boundary: &str) -> Option<FormFile> {
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    // The first delimiter may have no line end before it.
    let is_first = body.starts_with(&delimiter[2..]);
    let mut at =
        if is_first { delimiter.len() - 2 } else { find(body, &delimiter)? + delimiter.len() };
    while !body[at..].starts_with(b"--") {
        let head_start = at + find(&body[at..], b"\r\n")?;
        let head_end = head_start + find(&body[head_start..], b"\r\n\r\n")?;
        let start = head_end + 4;
        let end = start + find(&body[start - 2..], &delimiter)?.checked_sub(2)?;
        let head = String::from_utf8_lossy(&body[head_start..head_end]);
        let header = |wanted: &str| {
            let mut headers = head.lines().filter_map(|line| line.split_once(':'));
            headers
                .find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim())
        };
        if let Some(name) = header("content-disposition").and_then(file_name) {
            // In forms, browsers write a quotation mark so.
            let name = name.replace("%22", "\"");
            let media_type = header("content-type").unwrap_or_default().to_owned();
            return Some(FormFile { bytes: body.slice(start..end), media_type, name });
        }
        at = end + delimiter.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &str) -> Option<(String, String, String)> {
        let file = first_file(&Bytes::copy_from_slice(body.as_bytes()), "b")?;
        Some((String::from_utf8(file.bytes.to_vec()).unwrap(), file.media_type, file.name))
    }

    fn found(bytes: &str, media_type: &str, name: &str) -> Option<(String, String, String)> {
        Some((bytes.to_owned(), media_type.to_owned(), name.to_owned()))
    }

    #[test]
    fn the_first_file_of_a_form_is_found() {
        let text = "--b\r\nContent-Disposition: form-data; name=\"text\"\r\n\r\nhello\r\n";
        let file = "--b\r\ncontent-type: image/png\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.png\"\r\n\r\n\
                    x\r\n-b\r\n\r\n--b--\r\n";
        assert_eq!(read(&format!("{text}{file}")), found("x\r\n-b\r\n", "image/png", "a.png"));
        assert_eq!(
            read(&format!("preamble\r\n{file}")),
            found("x\r\n-b\r\n", "image/png", "a.png")
        );
        assert_eq!(read(&format!("{text}--b--\r\n{file}")), None, "behind the end");
        assert_eq!(read(&format!("{text}--b--\r\n")), None);
        assert_eq!(read(&file[..file.len() - 6]), None, "cut off");
        let empty = "--b\r\nContent-Disposition: form-data; filename=\"\"\r\n\r\n\r\n--b--";
        assert_eq!(read(empty), found("", "", ""));
        let quoted = "--b\r\nContent-Disposition: form-data; filename=\"a %22b%22 100%.png\"\r\n\r\n\r\n--b--";
        assert_eq!(read(quoted), found("", "", "a \"b\" 100%.png"));
    }

    proptest! {
        #[test]
        fn no_body_makes_reading_fail(
            parts in prop::collection::vec(prop::sample::select(vec!["--b", "--", "\r\n", "\r\n\r\n", "a: b", "content-disposition: x; filename=a"]), 0..12),
        ) {
            let _ = read(&parts.concat());
        }
    }
}
