//! Reads an `Accept` header as far as it matters here.

/// Whether the header names a media type, with a quality above zero.
pub(super) fn names(header: &str, media_type: &str) -> bool {
    header.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media_type));
        named && !parts.any(is_zero_quality)
    })
}

fn is_zero_quality(parameter: &str) -> bool {
    match parameter.split_once('=') {
        Some((name, value)) if name.trim().eq_ignore_ascii_case("q") => {
            value.trim().parse::<f32>().is_ok_and(|quality| quality <= 0.0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_type_counts_when_it_is_named_with_a_positive_quality() {
        let media_type = "application/vnd.ag-ui.event+proto";
        for (header, expected) in [
            ("application/vnd.ag-ui.event+proto", true),
            ("text/event-stream, APPLICATION/vnd.ag-ui.event+proto; q=0.1", true),
            ("application/vnd.ag-ui.event+proto;v=1;q=1", true),
            ("application/vnd.ag-ui.event+proto ; q=0", false),
            ("application/vnd.ag-ui.event+proto;Q=0.000", false),
            ("*/*", false),
            ("application/*", false),
            ("application/vnd.ag-ui.event+protobuf", false),
            ("", false),
        ] {
            assert_eq!(names(header, media_type), expected, "{header}");
        }
    }
}
