//! Attachments that a model cannot read: text files become text, and a note for the model and the
//! user replaces other files.

use base64::Engine as _;

use super::wire::{media, skipped_medium};
use crate::model::{ModelStep, SkippedAttachment};
use agui_base::{
    base64_text::{LENIENT, is_standard},
    text::{essence, is_in},
};
use agui_protocol::{ContentPart, MediaPart, PartSource};

/// The largest text of a file, about 64 000 tokens. A longer one is cut.
const MAX_TEXT_BYTES: usize = 256 << 10;
const CUT_MARK: &str = "(Here the attachment is cut.)";

/// Collects the attachments that a request cannot contain.
#[derive(Debug)]
pub(super) struct Attachments {
    /// The first step whose attachments no earlier request has reported.
    first_new: usize,
    is_new: bool,
    pub(super) skipped: Vec<SkippedAttachment>,
}

impl Attachments {
    pub(super) fn new(steps: &[ModelStep]) -> Self {
        let last_answer = steps.iter().rposition(|step| matches!(step, ModelStep::Assistant(_)));
        Self {
            first_new: last_answer.map_or(0, |last| last + 1),
            is_new: true,
            skipped: Vec::new(),
        }
    }

    /// Sets the step that the next parts belong to, by its index.
    pub(super) fn enter(&mut self, step: usize) {
        self.is_new = step >= self.first_new;
    }

    /// Returns a part in the provider's form, by `native`, or else its replacement text.
    pub(super) fn sent<T, R: AsRef<str>>(
        &mut self,
        part: &ContentPart,
        native: impl FnOnce(&ContentPart) -> Result<T, R>,
    ) -> Result<T, String> {
        match fault(part) {
            Some(reason) => Err(self.replacement(part, reason)),
            None => native(part).map_err(|reason| self.replacement(part, reason.as_ref())),
        }
    }

    /// Returns the replacement text of a part that the request cannot contain: the content of a
    /// text file, or else a note. `reason` is the reason why the part is not sent, as in
    /// `this model takes no video`.
    pub(super) fn replacement(&mut self, part: &ContentPart, reason: &str) -> String {
        let (kind, media) = match media(part) {
            Ok(kind_and_media) => kind_and_media,
            Err(text) => return text.to_owned(),
        };
        let label = label(kind, media);
        match text_of(media) {
            Some(Ok((text, false))) => {
                format!("Attached {label}:\n{text}\n(End of the attachment.)")
            }
            Some(Ok((text, true))) => {
                self.skip_rest(kind, media);
                format!("Attached {label}, cut because it is too long:\n{text}\n{CUT_MARK}")
            }
            unreadable => {
                let reason = unreadable.and_then(Result::err).unwrap_or(reason);
                self.skip(kind, media, reason);
                format!("(Attached: {label}. You cannot read it: {reason}.)")
            }
        }
    }

    /// Returns the content of a text file, for an API that takes it as a file of its own. Returns
    /// `None` for other parts, and for unreadable text.
    pub(super) fn text_file<'p>(
        &mut self,
        part: &'p ContentPart,
    ) -> Option<(&'p MediaPart, String)> {
        let (kind, media) = media(part).ok()?;
        let (mut text, was_cut) = text_of(media)?.ok()?;
        if was_cut {
            self.skip_rest(kind, media);
            text = format!("{text}\n{CUT_MARK}");
        }
        Some((media, text))
    }

    /// Reports the part of a text that was cut off.
    fn skip_rest(&mut self, kind: &'static str, media: &MediaPart) {
        let limit = format!("only its first {} KiB were given to the model", MAX_TEXT_BYTES >> 10);
        self.skip(kind, media, &limit);
    }

    fn skip(&mut self, kind: &'static str, media: &MediaPart, reason: &str) {
        if self.is_new {
            self.skipped.push(skipped_medium(kind, media, reason));
        }
    }
}

/// Returns the reason why no provider takes the data of a file. Text files have their own check.
/// `history` has brought the data into the standard form, unless it is not base64.
fn fault(part: &ContentPart) -> Option<&'static str> {
    let (_, media) = media(part).ok()?;
    let PartSource::Data { value, mime_type } = &media.source else { return None };
    if is_text(mime_type, media.file_name()) {
        return None;
    }
    match value.as_str() {
        "" => Some("it is empty"),
        value if is_standard(value) => None,
        _ => Some("its data is not base64, or is cut"),
    }
}

/// Returns the kind, the name and the type, for the model.
fn label(kind: &str, media: &MediaPart) -> String {
    let name =
        media.file_name().map(|name| format!(" \"{}\"", name.replace(['"', '\n', '\r'], " ")));
    let mime_type = media.source.mime_type().map(|mime_type| format!(" ({})", essence(mime_type)));
    format!("{kind}{}{}", name.unwrap_or_default(), mime_type.unwrap_or_default())
}

/// Returns the beginning of the text, and whether it was cut, if this is a text file with its data.
/// `history` has converted `data:` URLs to data.
pub(crate) fn text_of(media: &MediaPart) -> Option<Result<(String, bool), &'static str>> {
    let PartSource::Data { value, mime_type } = &media.source else { return None };
    if !is_text(mime_type, media.file_name()) {
        return None;
    }
    // Four characters encode three bytes. A cut between such groups keeps the beginning decodable.
    let most = MAX_TEXT_BYTES / 3 * 4 + 4;
    let kept: Vec<u8> =
        value.bytes().filter(|byte| !byte.is_ascii_whitespace()).take(most + 1).collect();
    let was_cut = kept.len() > most;
    let Ok(bytes) = LENIENT.decode(&kept[..kept.len().min(most)]) else {
        return Some(Err("its data is not base64"));
    };
    Some(
        decode(&bytes, charset(mime_type).as_deref(), was_cut)
            .ok_or("its text is not in a known charset"),
    )
}

fn is_text(mime_type: &str, name: Option<&str>) -> bool {
    let essence = essence(mime_type);
    let is_unknown = matches!(essence.as_str(), "" | "application/octet-stream");
    let extension = || Some(name?.rsplit_once('.')?.1.to_ascii_lowercase());
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || essence.strip_prefix("application/").is_some_and(|kind| is_in(TEXT_TYPES, kind))
        || is_unknown && extension().is_some_and(|extension| is_in(TEXT_EXTENSIONS, &extension))
}

fn charset(mime_type: &str) -> Option<String> {
    let parameters = mime_type.split(';').skip(1);
    let mut pairs = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, charset) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Some(charset.trim().trim_matches('"').to_ascii_lowercase())
}

/// Types below `application/` that are text.
const TEXT_TYPES: &str = "\
    csv graphql javascript json json5 jsonl markdown ndjson sql toml typescript x-httpd-php x-javascript \
    x-json x-ndjson x-perl x-python x-ruby x-sh x-shellscript x-sql x-tex x-toml x-typescript x-yaml xml xhtml \
    yaml";

/// Extensions of text files whose type is unknown.
const TEXT_EXTENSIONS: &str = "\
    bat c cc cfg conf cpp cs css csv diff env go h hpp htm html ini ipynb java js json jsonl jsx kt log lua md \
    patch php pl properties ps1 py r rb rs rst scala sh sql svg swift tex toml ts tsv tsx txt vue xml yaml yml";

/// Decodes bytes by the declared charset, or else as UTF-8 or by the byte order mark. Returns
/// `None` if the bytes are invalid in that charset. A character that the cut has split is left out.
fn decode(bytes: &[u8], charset: Option<&str>, mut was_cut: bool) -> Option<(String, bool)> {
    let (bytes, charset) = match (bytes, charset) {
        ([0xef, 0xbb, 0xbf, rest @ ..], _) => (rest, "utf-8"),
        ([0xff, 0xfe, rest @ ..], _) => (rest, "utf-16le"),
        ([0xfe, 0xff, rest @ ..], _) => (rest, "utf-16be"),
        (bytes, charset) => (bytes, charset.unwrap_or("utf-8")),
    };
    let kept = &bytes[..bytes.len().min(MAX_TEXT_BYTES)];
    was_cut |= kept.len() < bytes.len();
    let utf16 = |unit: fn([u8; 2]) -> u16| {
        let units = kept.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect::<String>()
    };
    let text = match charset {
        "utf-8" | "utf8" | "us-ascii" | "ascii" => match std::str::from_utf8(kept) {
            Ok(text) => text.to_owned(),
            Err(error) if was_cut && error.error_len().is_none() => {
                String::from_utf8_lossy(&kept[..error.valid_up_to()]).into_owned()
            }
            Err(_) => return None,
        },
        "iso-8859-1" | "latin1" => kept.iter().copied().map(char::from).collect(),
        "windows-1252" | "cp1252" => kept.iter().copied().map(windows_1252).collect(),
        "utf-16" | "utf-16le" => utf16(u16::from_le_bytes),
        "utf-16be" => utf16(u16::from_be_bytes),
        _ => return None,
    };
    Some((text, was_cut))
}

/// Returns the character of a byte: that of ISO 8859-1, except between 0x80 and 0x9f.
fn windows_1252(byte: u8) -> char {
    const FROM_80: &str = "€\u{81}‚ƒ„…†‡ˆ‰Š‹Œ\u{8d}Ž\u{8f}\u{90}‘’“”•–—˜™š›œ\u{9d}žŸ";
    match byte {
        0x80..=0x9f => {
            FROM_80.chars().nth(usize::from(byte - 0x80)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::from(byte),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn document(mime_type: &str, bytes: &[u8], name: Option<&str>) -> ContentPart {
        let value = LENIENT.encode(bytes);
        let mut media =
            MediaPart::from(PartSource::Data { value, mime_type: mime_type.to_owned() });
        media.metadata = name.map(|name| json!({"filename": name}));
        ContentPart::Document(media)
    }

    /// Returns the text for the model, and the reasons of skipped attachments.
    fn replaced(part: &ContentPart) -> (String, Vec<String>) {
        let mut attachments = Attachments::new(&[]);
        let text = attachments.replacement(part, "no reason");
        (text, attachments.skipped.into_iter().map(|skipped| skipped.reason).collect())
    }

    #[test]
    fn a_text_file_becomes_text_with_its_name() {
        for (mime_type, name) in [
            ("text/csv; charset=utf-8", "a.csv"),
            ("text/markdown", "a.md"),
            ("application/json", "a.json"),
            ("application/ld+json", "a"),
            ("text/html", "a.html"),
            ("image/svg+xml", "a.svg"),
            ("application/octet-stream", "a.RS"),
            ("", "a.yaml"),
        ] {
            let (text, skipped) = replaced(&document(mime_type, "x,ü\n".as_bytes(), Some(name)));
            assert!(
                text.contains(name) && text.contains("x,ü\n") && skipped.is_empty(),
                "{mime_type}: {text}"
            );
        }
        let unnamed = document("text/plain", b"hi", None);
        assert_eq!(
            replaced(&unnamed).0,
            "Attached document (text/plain):\nhi\n(End of the attachment.)"
        );
    }

    #[test]
    fn charsets_are_read_as_declared_or_by_their_mark() {
        for (mime_type, bytes) in [
            ("text/plain", &b"\xef\xbb\xbfa\xc3\xa9"[..]),
            ("text/plain", b"\xff\xfea\0\xe9\0"),
            ("text/plain", b"\xfe\xff\0a\0\xe9"),
            ("text/plain; charset=ISO-8859-1", b"a\xe9"),
            ("text/plain; format=flowed; Charset=\"windows-1252\"", b"a\xe9"),
            ("text/plain; charset=utf-16be", b"\0a\0\xe9"),
        ] {
            assert!(
                replaced(&document(mime_type, bytes, None)).0.contains("\naé\n"),
                "{mime_type} {bytes:?}"
            );
        }
        assert_eq!(windows_1252(0x80), '€');
        assert_eq!(windows_1252(0x9f), 'Ÿ');
        for (mime_type, bytes) in
            [("text/plain", &b"a\xe9"[..]), ("text/plain; charset=klingon", b"a")]
        {
            let (text, skipped) = replaced(&document(mime_type, bytes, None));
            assert_eq!(skipped, ["its text is not in a known charset"]);
            assert!(text.starts_with("(Attached: document (text/plain)."), "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let (text, skipped) =
            replaced(&document("text/plain", "é".repeat(MAX_TEXT_BYTES).as_bytes(), None));
        assert_eq!(text.matches('é').count(), MAX_TEXT_BYTES / 2);
        assert_eq!(skipped, ["only its first 256 KiB were given to the model"]);
        let (text, skipped) =
            replaced(&document("text/plain", "#".repeat(MAX_TEXT_BYTES).as_bytes(), None));
        assert_eq!((text.matches('#').count(), skipped.len()), (MAX_TEXT_BYTES, 0));
    }

    #[test]
    fn an_unreadable_attachment_is_described_to_the_model_and_reported_once() {
        let video = document("video/mp4", b"", Some("a\"b.mp4"));
        let steps = [
            ModelStep::User(vec![video.clone()]),
            ModelStep::Assistant(Vec::new()),
            ModelStep::User(vec![video.clone()]),
        ];
        let mut attachments = Attachments::new(&steps);
        for step in [0, 2] {
            attachments.enter(step);
            let text = attachments.replacement(&video, "this model takes no videos");
            assert_eq!(
                text,
                "(Attached: document \"a b.mp4\" (video/mp4). You cannot read it: this model takes no videos.)"
            );
        }
        let skipped = attachments.skipped;
        assert_eq!(skipped.len(), 1);
        assert_eq!((skipped[0].kind, skipped[0].name.as_deref()), ("document", Some("a\"b.mp4")));
        assert_eq!(skipped[0].mime_type.as_deref(), Some("video/mp4"));
    }

    #[test]
    fn a_file_without_readable_data_is_never_sent() {
        for (value, expected) in [
            ("AA==", None),
            ("", Some("it is empty")),
            ("AAAAA", Some("its data is not base64, or is cut")),
            ("A===", Some("its data is not base64, or is cut")),
            ("data:image/png;base64,AA==", Some("its data is not base64, or is cut")),
        ] {
            let source =
                PartSource::Data { value: value.to_owned(), mime_type: "image/png".to_owned() };
            let mut attachments = Attachments::new(&[]);
            let sent = attachments.sent(&ContentPart::Image(source.into()), |_| Ok::<_, &str>(()));
            let reasons: Vec<_> =
                attachments.skipped.into_iter().map(|skipped| skipped.reason).collect();
            assert_eq!(reasons, Vec::from_iter(expected), "{value}");
            assert_eq!(
                sent.err().map(|note| note.contains(expected.unwrap_or_default())),
                expected.map(|_| true)
            );
        }
    }

    #[test]
    fn data_that_is_not_base64_is_skipped() {
        let source = PartSource::Data { value: "!".to_owned(), mime_type: "text/plain".to_owned() };
        assert_eq!(replaced(&ContentPart::Document(source.into())).1, ["its data is not base64"]);
    }
}
