//! URLs of files that an `<img>` without headers can load: `/files/ID?expires=SECONDS&signature=…`. Each opens one file until a
//! time, and nothing else. The signature covers the owner, so that a message which names another owner's file gets a URL that opens
//! nothing.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq as _;

use agui_base::hmac::hmac_sha256;
use agui_protocol::PartSource;
use agui_store::{Millis, files::new_secret};

/// A URL ends at a full hour, so that it stays the same for some time, and browsers need not load the file again.
const ROUNDED_SECONDS: i64 = 3600;

/// Signs URLs of files, and checks them.
#[derive(Clone, Copy)]
pub struct UrlSigner {
    pub(super) key: [u8; 32],
    pub(super) valid_seconds: i64,
}

impl UrlSigner {
    /// A signer with a secret of its own, for a store without secrets.
    #[must_use]
    pub fn random() -> Self {
        Self { key: new_secret(), valid_seconds: 0 }
    }

    /// Returns the signature of another text, which begins with what it is for.
    pub fn sign(&self, text: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac_sha256(&self.key, text.as_bytes()))
    }

    /// Returns the path of an owner's file with a signature that is valid for the configured time.
    pub fn path(&self, owner: &str, id: &str, now: Millis) -> String {
        let expires =
            (now / 1000 + self.valid_seconds) / ROUNDED_SECONDS * ROUNDED_SECONDS + ROUNDED_SECONDS;
        format!("/files/{id}?expires={expires}&signature={}", self.signature(owner, id, expires))
    }

    /// Returns whether a signature opens a file of an owner now.
    pub fn is_valid(
        &self,
        owner: &str,
        id: &str,
        expires: i64,
        signature: &str,
        now: Millis,
    ) -> bool {
        self.is_signed(owner, id, expires, signature) && now / 1000 < expires
    }

    /// Returns the id of the file in a URL that was signed for an owner, also if it has expired.
    pub(crate) fn file_of<'u>(&self, owner: &str, url: &'u str) -> Option<&'u str> {
        let id = file_of_url(url)?;
        let parameter =
            |name: &str| url.split_once('?')?.1.split('&').find_map(|pair| pair.strip_prefix(name));
        let (expires, signature) = (parameter("expires=")?.parse().ok()?, parameter("signature=")?);
        self.is_signed(owner, id, expires, signature).then_some(id)
    }

    fn is_signed(&self, owner: &str, id: &str, expires: i64, signature: &str) -> bool {
        self.signature(owner, id, expires).as_bytes().ct_eq(signature.as_bytes()).into()
    }

    fn signature(&self, owner: &str, id: &str, expires: i64) -> String {
        self.sign(&format!("{expires} {id} {owner}"))
    }
}

/// Returns the file id in a URL of this server, valid or not, at any host.
fn file_of_url(url: &str) -> Option<&str> {
    let (path, query) = url.split_once('?')?;
    let id = path.rsplit_once("/files/")?.1;
    let hex = id.strip_prefix("file_")?;
    let is_id =
        hex.len() == 32 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_id && query.split('&').any(|parameter| parameter.starts_with("signature="))).then_some(id)
}

/// Returns the id of the file that a source names.
pub(super) fn file_of(source: &PartSource) -> Option<&str> {
    match source {
        PartSource::Url { value, .. } => file_of_url(value),
        source => source.stored_file(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Millis = 3_600_000;
    const ID: &str = "file_0123456789abcdef0123456789abcdef";

    fn signer(key: u8) -> UrlSigner {
        UrlSigner { key: [key; 32], valid_seconds: 2 * 3600 }
    }

    fn parts(path: &str) -> (&str, i64, &str) {
        let (path, query) = path.split_once('?').unwrap();
        let (expires, signature) =
            query.strip_prefix("expires=").unwrap().split_once("&signature=").unwrap();
        (path.strip_prefix("/files/").unwrap(), expires.parse().unwrap(), signature)
    }

    #[test]
    fn a_signature_opens_one_file_until_its_time() {
        let path = signer(1).path("key:ann", ID, 10 * HOUR + 7);
        assert_eq!(
            path,
            signer(1).path("key:ann", ID, 11 * HOUR - 7),
            "it stays the same within an hour"
        );
        let (id, expires, signature) = parts(&path);
        assert_eq!((id, expires), (ID, 13 * 3600));
        let opens = |key, id: &str, expires, signature: &str, now| {
            assert!(!signer(key).is_valid("key:bob", id, expires, signature, now));
            signer(key).is_valid("key:ann", id, expires, signature, now)
        };
        let file_of = |key, owner, url: &str| signer(key).file_of(owner, url) == Some(ID);
        assert!(
            file_of(1, "key:ann", &path)
                && file_of(1, "key:ann", &format!("https://a.example{path}&x=1"))
        );
        assert!(
            !file_of(1, "key:bob", &path)
                && !file_of(2, "key:ann", &path)
                && !file_of(1, "key:ann", &path[..90])
        );
        assert!(opens(1, ID, expires, signature, 13 * HOUR - 1));
        assert!(!opens(1, ID, expires, signature, 13 * HOUR));
        assert!(!opens(2, ID, expires, signature, 0));
        assert!(!opens(1, "file_1", expires, signature, 0));
        assert!(!opens(1, ID, expires + 1, signature, 0));
        assert!(!opens(1, ID, expires, &signature[1..], 0) && !opens(1, ID, expires, "", 0));
    }

    #[test]
    fn a_url_names_its_file_at_any_host() {
        for host in ["", "http://localhost:8080", "https://a.example/base"] {
            assert_eq!(
                file_of_url(&format!("{host}{}", signer(1).path("key:ann", ID, 0))),
                Some(ID),
                "{host}"
            );
        }
        for other in [
            "",
            "/files/x?signature=1",
            &format!("/files/{ID}"),
            &format!("/files/{ID}/a?signature=1"),
        ] {
            assert_eq!(file_of_url(other), None, "{other}");
        }
    }
}
