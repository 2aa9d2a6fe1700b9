//! JSON as others write it, where the strict parser has refused a text: halves of surrogate pairs.

use std::borrow::Cow;

/// Private code points mark lone halves: the string before or after theirs may have the other half.
const FIRST_MARK: u32 = 0x10_F000;
const HIGH: std::ops::RangeInclusive<u32> = 0xD800..=0xDBFF;
const LOW: std::ops::RangeInclusive<u32> = 0xDC00..=0xDFFF;

/// Returns the text with U+FFFD for each escape of a half without the other one; `None` if there is none.
pub(crate) fn without_lone_halves(text: &str) -> Option<String> {
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
    let mut marked = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        marked.push_str(before);
        let unit = unit(escape);
        let pair = unit.filter(|unit| HIGH.contains(unit)).and_then(|_| self::unit(escape.get(6..)?));
        let length = match (unit, pair) {
            (Some(_), Some(low)) if LOW.contains(&low) => 12,
            (Some(lone), _) if HIGH.contains(&lone) || LOW.contains(&lone) => {
                marked.extend(char::from_u32(lone - HIGH.start() + FIRST_MARK));
                rest = &escape[6..];
                continue;
            }
            // The escaped character may be a backslash.
            _ => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        marked.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    // A mark is shorter than the escape. All else is copied as it is.
    if marked.len() + rest.len() == text.len() {
        return (text.into(), false);
    }
    marked.push_str(rest);
    (marked.into(), true)
}

/// Returns the code unit of an escape at the beginning of a text.
fn unit(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_lone_halves_become_replacement_characters() {
        for (text, expected) in [
            (r#"{"a":"x \ud83d y"}"#, Some("{\"a\":\"x \u{fffd} y\"}")),
            (r#"["\ude00","\ud83d\ud83d"]"#, Some("[\"\u{fffd}\",\"\u{fffd}\u{fffd}\"]")),
            (r#"["\ud83d\ude00","\\ud83d","\u12"]"#, None),
            (r#""\"#, None),
        ] {
            assert_eq!(without_lone_halves(text).as_deref(), expected, "{text}");
        }
    }
}
