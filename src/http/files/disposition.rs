//! The header `Content-Disposition`, which has the names of files (RFC 6266), and other headers with parameters.

use axum::http::HeaderValue;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Returns the parameters of a header, with their names in lower case.
pub(super) fn parameters(header: &str) -> Vec<(String, String)> {
    let (mut found, mut rest) = (Vec::new(), header);
    while let Some((name, value)) =
        rest.split_once(';').and_then(|(_, after)| after.split_once('='))
    {
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let (value, after) = value.split_at(value.find(';').unwrap_or(value.len()));
                (value.trim().to_owned(), after)
            }
        };
        found.push((name.trim().to_ascii_lowercase(), value));
        rest = after;
    }
    found
}

/// Returns a text up to its closing quotation mark, and what stands behind it.
fn unquoted(quoted: &str) -> (String, &str) {
    let (mut text, mut chars) = (String::new(), quoted.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &quoted[at + 1..]),
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            c => text.push(c),
        }
    }
    (text, "")
}

/// Returns the name of the file that a header declares, without folders.
pub(super) fn file_name(header: &str) -> Option<String> {
    let parameters = parameters(header);
    let parameter = |wanted: &str| {
        parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    let extended = parameter("filename*").and_then(|value| value.rsplit_once('\''));
    let name = match extended {
        Some((_, encoded)) => percent_decode_str(encoded).decode_utf8_lossy().into_owned(),
        None => parameter("filename")?.to_owned(),
    };
    name.rsplit(['/', '\\']).next().map(str::to_owned)
}

/// Returns the header of a response with a file.
pub(super) fn content_disposition(kind: &str, name: &str) -> HeaderValue {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_. ".contains(c) { c } else { '_' })
        .collect();
    let extended = utf8_percent_encode(name, NON_ALPHANUMERIC);
    let header = format!("{kind}; filename=\"{plain}\"; filename*=UTF-8''{extended}");
    HeaderValue::try_from(header).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_clients_write_it() {
        for (header, expected) in [
            ("attachment; filename=\"a b.png\"", Some("a b.png")),
            ("form-data; name=\"file\"; filename=\"é;=.png\"", Some("é;=.png")),
            ("attachment; filename=a.png; size=3", Some("a.png")),
            ("attachment; FileName=\"a\\\"b.png\"", Some("a\"b.png")),
            ("attachment; filename=\"x\"; filename*=UTF-8''%e2%82%ac.png", Some("€.png")),
            ("inline; filename=\"/etc/passwd\"", Some("passwd")),
            ("inline; filename=\"C:\\\\a.png\"", Some("a.png")),
            ("inline; filename=\"a", Some("a")),
            ("form-data; name=\"text\"", None),
            ("", None),
            (";;=", None),
        ] {
            assert_eq!(file_name(header).as_deref(), expected, "{header}");
        }
    }

    #[test]
    fn a_name_is_written_for_all_clients() {
        let header = content_disposition("inline", "a\"\r\n€.png");
        assert_eq!(
            header,
            "inline; filename=\"a____.png\"; filename*=UTF-8''a%22%0D%0A%E2%82%AC%2Epng"
        );
    }
}
