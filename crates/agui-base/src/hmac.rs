//! Signatures that only holders of a key can make.

use sha2::{Digest as _, Sha256};

/// RFC 2104, with a key that is shorter than a block.
pub fn hmac_sha256(key: &[u8; 32], text: &[u8]) -> [u8; 32] {
    let padded =
        |pad: u8| -> [u8; 64] { std::array::from_fn(|at| key.get(at).copied().unwrap_or(0) ^ pad) };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::hex;

    /// RFC 4231, test case 1 with its key padded by zeros, which means the same.
    #[test]
    fn the_signature_is_an_hmac() {
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        assert_eq!(
            hex(&hmac_sha256(&key, b"Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
    }
}
