//! Reads JSON that the strict parser has refused: halves of surrogate pairs, `NaN`, a byte order
//! mark. Only texts that lose nothing are read leniently.

use std::borrow::Cow;

use serde_json::Value;

use super::repairs::{Partner, Repair, repaired};

/// Private code points mark lone halves: the string before or after theirs may have the other half.
const FIRST_MARK: u32 = 0x10_F000;
const HIGH: std::ops::RangeInclusive<u32> = 0xD800..=0xDBFF;
const LOW: std::ops::RangeInclusive<u32> = 0xDC00..=0xDFFF;

/// A text that is JSON now.
pub struct LenientJson {
    /// Strings may have marks, which [`JoinedText`] takes out.
    pub text: String,
    pub has_halves: bool,
    /// The repairs, for logs.
    pub repair: Repair,
}

/// A value with a member that is a piece of a text. Other values continue the text.
pub struct Piece {
    pub value: Value,
    /// `true` if the member has marks, which [`JoinedText`] takes out.
    pub has_halves: bool,
}

/// Returns a text as JSON, or `None` if nothing in it can be repaired.
pub fn lenient(text: &str) -> Option<LenientJson> {
    let (marked, has_halves) = mark_halves(text);
    let (numbers, has_numbers) = without_nan(&marked);
    let body = numbers.trim_start_matches('\u{feff}');
    let repair = match (has_halves, has_numbers) {
        (true, _) => Repair::Half,
        (_, true) => Repair::NotANumber,
        _ if body.len() < numbers.len() => Repair::ByteOrderMark,
        _ => return None,
    };
    Some(LenientJson { text: body.to_owned(), has_halves, repair })
}

/// Parses JSON, leniently if the strict parser refuses it. A lone half becomes U+FFFD.
///
/// # Errors
/// The error of the strict parser.
pub fn parse(text: &str, partner: Partner) -> Result<Value, serde_json::Error> {
    parse_piece(text, "", partner).map(|piece| piece.value)
}

/// Parses JSON, as [`parse`] does. Halves in the member of this name get marks.
///
/// # Errors
/// The error of the strict parser.
pub fn parse_piece(text: &str, member: &str, partner: Partner) -> Result<Piece, serde_json::Error> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(Piece { value, has_halves: false }),
        Err(error) => error,
    };
    let Some(lenient) = lenient(text) else { return Err(error) };
    let Ok(mut value) = serde_json::from_str::<Value>(&without_marks(&lenient.text)) else {
        return Err(error);
    };
    report(lenient.repair, partner);
    let mut has_halves = false;
    if lenient.has_halves
        && let Some(piece) = value.get_mut(member)
        && let Ok(mut marked) = serde_json::from_str::<Value>(&lenient.text)
    {
        *piece = marked[member].take();
        has_halves = true;
    }
    Ok(Piece { value, has_halves })
}

/// Returns a text as valid JSON, without its halves, or `None` if nothing in it can be repaired.
pub fn repaired_text(text: &str, partner: Partner) -> Option<String> {
    let lenient = lenient(text)?;
    report(lenient.repair, partner);
    Some(without_marks(&lenient.text).into_owned())
}

pub fn report(repair: Repair, partner: Partner) {
    tracing::warn!(
        repair = repair.as_str(),
        partner = partner.as_str(),
        "read JSON that is not valid"
    );
    repaired(partner, repair);
}

/// Returns the text with U+FFFD for each escape of a lone half, or `None` if it has none.
pub fn without_lone_halves(text: &str) -> Option<String> {
    let (marked, has_halves) = mark_halves(text);
    has_halves.then(|| without_marks(&marked).into_owned())
}

fn without_marks(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| half(c).is_some()) {
        return text.into();
    }
    text.chars().map(|c| if half(c).is_some() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns the half that a mark stands for.
fn half(c: char) -> Option<u32> {
    let unit = u32::from(c).checked_sub(FIRST_MARK)? + HIGH.start();
    (HIGH.contains(&unit) || LOW.contains(&unit)).then_some(unit)
}

/// Puts marks in the place of the escapes of lone halves.
fn mark_halves(text: &str) -> (Cow<'_, str>, bool) {
    replaced(text, &['\\'], |escape| {
        let unit = unit(escape);
        let pair =
            unit.filter(|unit| HIGH.contains(unit)).and_then(|_| self::unit(escape.get(6..)?));
        match (unit, pair) {
            (Some(_), Some(low)) if LOW.contains(&low) => (12, None),
            (Some(lone), _) if HIGH.contains(&lone) || LOW.contains(&lone) => (
                6,
                char::from_u32(lone - HIGH.start() + FIRST_MARK)
                    .map(|mark| mark.to_string().into()),
            ),
            // The escaped character may be a backslash.
            _ => (1 + escape[1..].chars().next().map_or(0, char::len_utf8), None),
        }
    })
}

/// Returns the code unit of an escape at the beginning of a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

/// Puts `null` in the place of numbers that JSON lacks.
fn without_nan(text: &str) -> (Cow<'_, str>, bool) {
    replaced(text, &['"', 'N', 'I', '-'], |rest| {
        match ["NaN", "Infinity", "-Infinity", "-NaN"]
            .into_iter()
            .find(|word| rest.starts_with(word))
        {
            Some(word) => (word.len(), Some("null".into())),
            None if rest.starts_with('"') => (string_length(rest), None),
            None => (1, None),
        }
    })
}

/// Replaces parts of a text that begin with one of these characters. `part` returns the length of
/// the part at the beginning of a text, and its replacement, if any. Returns whether a part was
/// replaced.
fn replaced<'t>(
    text: &'t str,
    first: &[char],
    part: impl Fn(&str) -> (usize, Option<Cow<'static, str>>),
) -> (Cow<'t, str>, bool) {
    let mut new = String::new();
    let mut rest = text;
    let mut is_changed = false;
    while let Some(at) = rest.find(first) {
        let (length, replacement) = part(&rest[at..]);
        is_changed |= replacement.is_some();
        let (before, behind) = rest.split_at(at + length);
        match replacement {
            Some(replacement) => new.extend([&before[..at], &*replacement]),
            None => new.push_str(before),
        }
        rest = behind;
    }
    if !is_changed {
        return (text.into(), false);
    }
    new.push_str(rest);
    (new.into(), true)
}

/// Returns the length of a string with its quotes, or of the text if the string has no end.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Joins the halves of pairs over the pieces of one text.
#[derive(Debug, Default)]
pub struct JoinedText {
    /// The half at the end of the last piece.
    held: Option<u32>,
}

impl JoinedText {
    /// Takes the marks out of a piece, which may become empty.
    pub fn piece(&mut self, piece: &mut String) {
        let held = self.held.take();
        let mut joined = String::with_capacity(piece.len() + 4);
        let mut high = held;
        for c in piece.chars() {
            let unit = half(c);
            match (high.take(), unit) {
                (Some(high), Some(low)) if LOW.contains(&low) => {
                    let code = 0x1_0000 + ((high - HIGH.start()) << 10) + (low - LOW.start());
                    joined.extend(char::from_u32(code));
                    continue;
                }
                (Some(_), _) => joined.push(char::REPLACEMENT_CHARACTER),
                (None, _) => {}
            }
            match unit {
                Some(unit) if HIGH.contains(&unit) => high = Some(unit),
                Some(_) => joined.push(char::REPLACEMENT_CHARACTER),
                None => joined.push(c),
            }
        }
        self.held = high;
        *piece = joined;
    }

    /// Returns whether the last piece ended with the first half of a pair.
    pub fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the replacement of a half whose other half did not arrive.
    pub fn end(&mut self) -> Option<String> {
        self.held.take().map(|_| char::REPLACEMENT_CHARACTER.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_write_is_read_and_the_rest_is_refused() {
        for (text, expected) in [
            (r#"{"a":"x \ud83d y"}"#, json!({"a": "x \u{fffd} y"})),
            (
                r#"{"a":"\ude00","b":"\ud83d\ude00\\ud83d"}"#,
                json!({"a": "\u{fffd}", "b": "😀\\ud83d"}),
            ),
            (
                r#"{"a":NaN,"b":[-Infinity,Infinity],"c":"NaN \" NaN","d":-1}"#,
                json!({"a": null, "b": [null, null], "c": "NaN \" NaN", "d": -1}),
            ),
            ("\u{feff}{}", json!({})),
        ] {
            assert_eq!(parse(text, Partner::Model).unwrap(), expected, "{text}");
        }
        for text in ["{", "{\"a\":}", "{'a':1}", "\"\\", "\"\\u12", "N", "\"\\ud83d"] {
            assert!(parse(text, Partner::Model).is_err(), "{text}");
        }
    }

    #[test]
    fn halves_are_joined_over_pieces() {
        for (pieces, expected) in [
            (vec![r"Hi \ud83d", r"\ude00!"], "Hi 😀!"),
            (vec![r"\ud83d", "", r"\ude00"], "\u{fffd}\u{fffd}"),
            (vec![r"\ud83d", "a"], "\u{fffd}a"),
            (vec![r"\ude00\ud83d"], "\u{fffd}\u{fffd}"),
            (vec![r"a\ud83d\ud83d", r"\ude00\ud83d"], "a\u{fffd}😀\u{fffd}"),
        ] {
            let mut text = JoinedText::default();
            let mut all = String::new();
            for piece in &pieces {
                let json = format!("\"{piece}\"");
                let json = lenient(&json).map_or(json, |lenient| lenient.text);
                let mut piece: String = serde_json::from_str(&json).unwrap();
                if piece.is_empty() {
                    all.extend(text.end());
                    continue;
                }
                text.piece(&mut piece);
                all.push_str(&piece);
            }
            all.extend(text.end());
            assert_eq!(all, expected, "{pieces:?}");
        }
    }
}
