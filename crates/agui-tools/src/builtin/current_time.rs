//! The tool `current_time`: models have no clock.

use jiff::{
    Timestamp,
    tz::{Offset, TimeZone},
};
use serde_json::json;

use crate::{FnTool, Repeat, ToolContext, ToolError, ToolSpec};
use agui_base::text::short_name;
use agui_protocol::JsonObject;

/// Returns the tool, which tells the date, the weekday and the time, in UTC or another time zone.
pub fn current_time() -> FnTool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "timezone": {
                "type": "string",
                "maxLength": 64,
                "description": "An IANA time zone such as \"Europe/Berlin\", or an offset such as \"+02:00\"; \
                                UTC if left out."
            }
        },
        "additionalProperties": false
    });
    let description = "Tells the current date, weekday and time, in UTC or in a given time zone.";
    FnTool::from_spec(ToolSpec::new("current_time", description, parameters), call)
        .repeat(Repeat::Safe)
}

async fn call(arguments: JsonObject, _: ToolContext) -> Result<String, ToolError> {
    let zone = arguments.get("timezone").and_then(|zone| zone.as_str()).unwrap_or_default();
    format_time(Timestamp::now(), zone).map_err(ToolError::new)
}

fn format_time(now: Timestamp, zone: &str) -> Result<String, String> {
    let found = time_zone(zone.trim()).ok_or_else(|| {
        let zone = short_name(zone);
        format!("There is no time zone {zone:?}. Use an IANA name such as \"Europe/Berlin\" or an offset such as \"+02:00\".")
    })?;
    let name = found.iana_name().map(|name| format!(" ({name})")).unwrap_or_default();
    Ok(format!("{}{name}", now.to_zoned_datetime(found).strftime("%A, %Y-%m-%dT%H:%M:%S%:z")))
}

fn time_zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "Z" | "z" => Some(TimeZone::UTC),
        _ => match offset(name) {
            Some(seconds) => Some(TimeZone::fixed(Offset::from_seconds(seconds).ok()?)),
            None => TimeZone::get(name).ok(),
        },
    }
}

/// Parses `+2`, `-03`, `+05:30` or `+0530`, with or without `UTC` or `GMT` before it. Returns seconds.
fn offset(text: &str) -> Option<i32> {
    let text = text.strip_prefix("UTC").or_else(|| text.strip_prefix("GMT")).unwrap_or(text);
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
    };
    let number = |text: &str| -> Option<i32> {
        (matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse().ok())?
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_in_the_named_time_zone() {
        let now: Timestamp = "2026-07-01T22:30:00.7Z".parse().unwrap();
        for (zone, expected) in [
            ("", "Wednesday, 2026-07-01T22:30:00+00:00 (UTC)"),
            ("UTC", "Wednesday, 2026-07-01T22:30:00+00:00 (UTC)"),
            ("Europe/Berlin", "Thursday, 2026-07-02T00:30:00+02:00 (Europe/Berlin)"),
            ("america/new_york", "Wednesday, 2026-07-01T18:30:00-04:00 (America/New_York)"),
            ("+05:30", "Thursday, 2026-07-02T04:00:00+05:30"),
            ("-0330", "Wednesday, 2026-07-01T19:00:00-03:30"),
            ("UTC+2", "Thursday, 2026-07-02T00:30:00+02:00"),
        ] {
            assert_eq!(format_time(now, zone).unwrap(), expected, "{zone}");
        }
    }

    #[test]
    fn other_zones_are_refused_with_an_example() {
        for zone in [
            "Berlin",
            "+25:00",
            "+1:99",
            "+",
            "+é2",
            "../../etc/passwd",
            "/etc/localtime",
            "+12345",
            "++1",
        ] {
            let error = format_time(Timestamp::UNIX_EPOCH, zone).unwrap_err();
            assert!(error.contains("Europe/Berlin"), "{zone}: {error}");
        }
    }
}
