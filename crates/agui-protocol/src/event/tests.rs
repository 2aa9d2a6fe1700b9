use super::*;

#[test]
fn an_event_takes_at_most_112_bytes() {
    assert!(size_of::<Event>() <= 112, "{} bytes", size_of::<Event>());
}

#[test]
fn the_31_event_types_have_distinct_names() {
    let names: std::collections::HashSet<_> = EventType::ALL.iter().map(|t| t.as_str()).collect();
    assert_eq!(names.len(), 31);
}
