//! Finds errors that a server writes into a stream of events as bare JSON, and converts them to
//! events.
//!
//! Google's servers do so when they fail in the middle of an answer, and so do gateways. By the rules of Server-Sent
//! Events such lines have unknown fields and are ignored, and the stream would seem to break off without a reason.

use bytes::Bytes;

/// The lines of a JSON text become the data of an event with the name `error`.
const FIRST: &[u8] = b"\nevent: error\ndata:";
const NEXT: &[u8] = b"data:";

/// Rewrites the bytes of a stream, piece by piece.
#[derive(Debug)]
pub(super) struct BareErrors {
    at_line_start: bool,
    after_cr: bool,
    in_json: bool,
}

impl BareErrors {
    pub(super) fn new() -> Self {
        Self { at_line_start: true, after_cr: false, in_json: false }
    }

    pub(super) fn rewrite(&mut self, piece: Bytes) -> Bytes {
        let mut rewritten = Vec::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(&byte) = piece.get(at) {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                at += 1;
                continue;
            }
            if std::mem::take(&mut self.at_line_start) {
                // No field of an event begins like this, and only these begin the lines of an object.
                let prefix = match byte {
                    b'{' if !self.in_json => FIRST,
                    b'{' | b'}' | b'[' | b']' | b'"' | b' ' | b'\t' if self.in_json => NEXT,
                    _ => b"",
                };
                self.in_json = !prefix.is_empty();
                if self.in_json {
                    rewritten.extend_from_slice(&piece[copied..at]);
                    rewritten.extend_from_slice(prefix);
                    copied = at;
                }
            }
            // Looking at each byte was 4 % of the CPU time of a token.
            let Some(length) = memchr::memchr2(b'\n', b'\r', &piece[at..]) else { break };
            at += length + 1;
            self.after_cr = piece[at - 1] == b'\r';
            self.at_line_start = true;
        }
        if rewritten.is_empty() {
            return piece;
        }
        rewritten.extend_from_slice(&piece[copied..]);
        rewritten.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text that is rewritten from pieces of this length.
    fn rewrite(text: &str, length: usize) -> String {
        let mut errors = BareErrors::new();
        let pieces = text
            .as_bytes()
            .chunks(length)
            .map(|piece| errors.rewrite(Bytes::copy_from_slice(piece)));
        String::from_utf8(pieces.flatten().collect()).unwrap()
    }

    #[test]
    fn bare_json_becomes_an_event_and_events_stay_as_they_are() {
        for (text, expected) in [
            (
                "data: {\"a\": 1}\n\n: c\n\nevent: x\ndata:{\n\n",
                "data: {\"a\": 1}\n\n: c\n\nevent: x\ndata:{\n\n",
            ),
            ("{\"error\": 1}", "\nevent: error\ndata:{\"error\": 1}"),
            (
                "data: a\r\n\r\n{\r\n  \"b\": 1\r\n}\r\n",
                "data: a\r\n\r\n\nevent: error\ndata:{\r\ndata:  \"b\": 1\r\ndata:}\r\n",
            ),
            ("{}\n\ndata: a\n\n", "\nevent: error\ndata:{}\n\ndata: a\n\n"),
            (" a\n[\n\"b\n", " a\n[\n\"b\n"),
        ] {
            for length in [1, 2, 7, 100] {
                assert_eq!(rewrite(text, length), expected, "{length}");
            }
        }
    }
}
