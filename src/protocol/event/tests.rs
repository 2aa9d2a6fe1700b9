use super::*;

#[test]
fn an_event_is_small_enough_to_move_by_the_million() {
    assert!(size_of::<Event>() <= 112, "{} bytes", size_of::<Event>());
}

#[test]
fn there_are_31_types_with_distinct_names() {
    let names: std::collections::HashSet<_> = EventType::ALL.iter().map(|t| t.as_str()).collect();
    assert_eq!(names.len(), 31);
}
