//! The number of values in a JSON text.

/// Counts the text and what comes after each `[`, `{` and `,` outside of strings: an empty array counts as two.
pub(crate) fn count_values(json: &[u8]) -> usize {
    let (mut values, mut in_string, mut bytes) = (1, false, json.iter());
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => _ = bytes.next(),
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        let counted =
            [r#"{}"#, r#"{"a":1,"b":[2,3]}"#, r#"["[,{","\",[,{",1]"#].map(|json| count_values(json.as_bytes()));
        assert_eq!(counted, [2, 5, 4]);
    }
}
