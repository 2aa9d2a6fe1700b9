//! The reader of other servers' events: the result is the same wherever the bytes are cut. The first byte is the way to
//! cut them, the second whether they are gzip, and whose events they are.
#![no_main]

use std::time::Duration;

use agui_base::upstream::events::{ServerEvent, StreamLimits, events, provider_events};
use agui_server_fuzz::{amplified, bounded, pieces, response};
use futures::StreamExt as _;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [how, kind, data @ ..] = data else { return };
    let (is_gzip, is_provider) = (kind & 1 == 1, kind & 2 == 2);
    let body = amplified(data);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    let read = |how: u8| {
        runtime.block_on(async {
            let response = response(pieces(&body, how), is_gzip);
            let limits = StreamLimits { max_event_bytes: 1000, idle_timeout: Duration::from_secs(1) };
            let events = if is_provider {
                provider_events(response, limits, &"".into())
            } else {
                events(response, limits, &"".into())
            };
            let events: Vec<Result<ServerEvent, String>> =
                events.map(|event| event.map_err(|fault| fault.to_string())).collect().await;
            events
        })
    };
    // A byte of gzip is up to a thousand bytes of events.
    let work = body.len() * if is_gzip { 1000 } else { 1 };
    let cut = bounded(work, || read(*how));
    let whole = read(0);
    if is_gzip && cut.last().is_some_and(Result::is_err) {
        // Of corrupt gzip, the end of the last good piece is lost.
        let common = cut.len().min(whole.len()) - 1;
        assert_eq!(cut[..common], whole[..common], "cut and whole");
        assert!(whole.last().is_some_and(Result::is_err), "{whole:?}");
    } else {
        assert_eq!(cut, whole, "cut and whole");
    }
    let good = whole.iter().filter_map(|event| event.as_ref().ok());
    for event in good {
        assert!(event.data.len() <= 1000, "{} bytes of data", event.data.len());
    }
});
