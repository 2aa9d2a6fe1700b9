use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use super::{
    ai_sdk::AiSdkEncoder, named_events::encoder::NamedEventEncoder, openai::test_encoder,
    tanstack::TanStackEncoder,
};
use agui_protocol::{
    Event,
    encode::SseDialect,
    event::{SubagentFinished, SubagentStarted, ToolCallResult, ToolCallStart},
};

const CALLS: usize = 4 << 10;
const GROWTH: usize = 16;
/// The limit of the ratio of both times. Linear time has the ratio 1, quadratic time `GROWTH`.
const MAX_RATIO: u32 = 5;
/// Shorter times are noise.
const NOISE: Duration = Duration::from_millis(10);
const ATTEMPTS: usize = 10;

/// Returns calls, their results and subagents: dialects keep lists of these events.
fn events(calls: usize) -> Vec<Event> {
    let ids: Vec<String> = (0..calls).map(|n| n.to_string()).collect();
    let begun = ids.iter().map(|id| ToolCallStart::new(id.as_str(), "f").into());
    let results =
        ids.iter().map(|id| ToolCallResult::new(format!("m{id}"), id.as_str(), "").into());
    let started = ids.iter().map(|id| SubagentStarted::new(id.as_str(), "s").into());
    let finished = ids.iter().map(|id| SubagentFinished::new(id.as_str()).into());
    begun.chain(results).chain(started).chain(finished).collect()
}

fn encode(events: &[Event]) {
    let dialects: [Box<dyn SseDialect>; 4] = [
        Box::<TanStackEncoder>::default(),
        Box::<AiSdkEncoder>::default(),
        Box::new(NamedEventEncoder::new("t".into(), "a")),
        Box::new(test_encoder("f")),
    ];
    for mut dialect in dialects {
        let mut out = Vec::new();
        events.iter().for_each(|event| dialect.event(event, &mut out));
        black_box(out);
    }
}

fn time(events: &[Event], times: usize) -> Duration {
    let begun = Instant::now();
    (0..times).for_each(|_| encode(events));
    begun.elapsed()
}

#[test]
fn the_time_of_a_dialect_grows_as_its_events() {
    let (few, many) = (events(CALLS), events(CALLS * GROWTH));
    let mut least = (Duration::MAX, Duration::MAX);
    // Other processes make single times longer, so the shortest ones count, of about the same work.
    let is_linear = (0..ATTEMPTS).any(|_| {
        least = (least.0.min(time(&few, GROWTH)), least.1.min(time(&many, 1)));
        least.1 < least.0 * MAX_RATIO + NOISE
    });
    assert!(is_linear, "{least:?}");
}
