//! The length of a value as JSON.

use std::io;

/// Returns the length of a value as JSON, in bytes, without writing it.
pub fn json_len(value: &impl serde::Serialize) -> u64 {
    struct LengthCounter(u64);
    impl io::Write for LengthCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = LengthCounter(0);
    // Writing to a counter cannot fail.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_len_is_the_length_of_the_json() {
        let value = serde_json::json!({ "a": ["é", 1.5, null, "\n"] });
        assert_eq!(json_len(&value), value.to_string().len() as u64);
    }
}
