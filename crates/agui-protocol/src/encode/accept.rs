//! Finds a media type in an `Accept` header. Wildcards and media types of quality zero do not count.

pub(super) fn names_media_type(header: &str, media_type: &str) -> bool {
    header.split(',').any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(media_type));
        is_named && !parts.any(is_zero_quality)
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
    use super::names_media_type;

    #[test]
    fn a_media_type_counts_if_it_is_named_with_a_positive_quality() {
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
            assert_eq!(names_media_type(header, media_type), expected, "{header}");
        }
    }
}
