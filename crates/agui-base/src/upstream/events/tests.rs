use futures::{FutureExt as _, stream};
use tokio::time::sleep;

use super::*;

fn event(name: Option<&str>, data: &str, is_cut_off: bool) -> ServerEvent {
    ServerEvent { name: name.map(str::to_owned), id: None, data: data.to_owned(), is_cut_off }
}

fn limits(max_event_bytes: usize) -> StreamLimits {
    StreamLimits { max_event_bytes, idle_timeout: Duration::from_secs(1) }
}

fn read(chunks: Vec<Vec<u8>>, most: usize) -> Vec<Result<ServerEvent, String>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let bytes = stream::iter(chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk))));
        let events = parse(bytes.boxed(), limits(most), LargeEvent::new(&"key:ann".into()));
        events.map(|event| event.map_err(|fault| fault.to_string())).collect().await
    })
}

/// Reads the text cut in two at each place, and cut into single bytes.
fn read_in_all_ways(text: &str, most: usize, expected: &[ServerEvent]) {
    let bytes = text.as_bytes();
    let single = bytes.iter().map(|byte| vec![*byte]).collect();
    let cuts = (0..=bytes.len()).map(|at| vec![bytes[..at].to_vec(), bytes[at..].to_vec()]);
    for chunks in cuts.chain([single]) {
        let shown = format!("{chunks:?}");
        let events: Vec<_> = read(chunks, most).into_iter().map(Result::unwrap).collect();
        assert_eq!(events, expected, "{shown}");
    }
}

#[test]
fn events_are_the_same_wherever_the_bytes_are_cut() {
    let expected = [
        event(None, "{\"é\":\"日🙂\"}", false),
        event(Some("x"), "a\nb", false),
        event(None, "[DONE]", false),
    ];
    for line_end in ["\n", "\r\n", "\r"] {
        let text = ": hi|data: {\"é\":\"日🙂\"}||event: x|data:a|data: b||id: only||data: [DONE]||";
        read_in_all_ways(&text.replace('|', line_end), 200, &expected);
        let with_bom = format!("\u{feff}{}", text.replace('|', line_end));
        read_in_all_ways(&with_bom, 200, &expected);
    }
    // A BOM before data, and before an empty line.
    read_in_all_ways("\u{feff}data: a\n\n", 100, &[event(None, "a", false)]);
    read_in_all_ways("\u{feff}\r\n\r\ndata: a\r\n\r\n", 100, &[event(None, "a", false)]);
}

#[test]
fn an_event_that_the_stream_cuts_off_is_read_and_marked() {
    read_in_all_ways(
        "data: a\n\ndata: [DONE]",
        200,
        &[event(None, "a", false), event(None, "[DONE]", true)],
    );
    read_in_all_ways(
        "data: a\n\ndata: [DONE]\n",
        200,
        &[event(None, "a", false), event(None, "[DONE]", true)],
    );
    read_in_all_ways(
        "data: a\r\n\r\ndata: b\r\n",
        200,
        &[event(None, "a", false), event(None, "b", true)],
    );
    read_in_all_ways("data: a\n\n: bye", 200, &[event(None, "a", false)]);
    read_in_all_ways("data: a\n\nda", 200, &[event(None, "a", false)]);
}

#[test]
fn an_endless_event_is_an_error_and_is_not_buffered() {
    // The parser buffers lines without end, events without an empty line, and comments.
    for piece in ["x", "data: x\n", ": x\n", "\u{feff}", "event: x\r\n"] {
        let chunks = std::iter::repeat_n(piece.as_bytes().to_vec(), 1000).collect();
        let read = read(chunks, 100);
        assert_eq!(read, [Err("one event has more than 100 bytes".to_owned())], "{piece}");
    }
    let events = read(vec![b"data: xxxxxxxx\n\n".to_vec(); 1000], 100);
    assert_eq!(events.len(), 1000);
}

#[test]
fn events_before_one_that_is_too_long_are_read_wherever_the_bytes_are_cut() {
    let text = format!("data: a\n\ndata: b\r\n\r\ndata: {}", "x".repeat(100)).into_bytes();
    for length in [1, 2, 7, 20, text.len()] {
        let read = read(text.chunks(length).map(<[u8]>::to_vec).collect(), 50);
        let too_long = Err("one event has more than 50 bytes".to_owned());
        assert_eq!(
            read,
            [Ok(event(None, "a", false)), Ok(event(None, "b", false)), too_long],
            "{length}"
        );
    }
}

#[test]
fn the_limit_is_on_each_event() {
    let text = format!("data: {}\n\n", "x".repeat(50));
    for line_end in ["\n", "\r\n", "\r"] {
        read_in_all_ways(
            &text.repeat(3).replace('\n', line_end),
            60,
            &vec![event(None, &"x".repeat(50), false); 3],
        );
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_an_error() {
    assert_eq!(
        read(vec![b"data: \xff\xfe\n\n".to_vec()], 100),
        [Err("the text is not UTF-8".to_owned())]
    );
}

#[test]
fn silence_is_an_error_and_slowness_is_not() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let events: Vec<_> = runtime.block_on(async {
        let bytes = async_stream::stream! {
            for byte in b"data: a\n\n: b" {
                tokio::time::sleep(Duration::from_millis(900)).await;
                yield Ok(Bytes::copy_from_slice(&[*byte]));
            }
            std::future::pending::<()>().await;
        };
        parse(bytes.boxed(), limits(100), LargeEvent::new(&"key:ann".into()))
            .map(|event| event.map_err(|fault| fault.to_string()))
            .collect()
            .await
    });
    assert_eq!(events, [Ok(event(None, "a", false)), Err("nothing came for 1s".to_owned())]);
}

#[test]
fn a_broken_connection_is_an_error_after_what_came_before_it() {
    let bytes = stream::iter([Ok("data: a\n\ndata: b".into()), Err("reset".into())]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let events: Vec<_> = runtime.block_on(async {
        parse(bytes.boxed(), limits(100), LargeEvent::new(&"key:ann".into())).collect().await
    });
    assert_eq!(events[0].as_ref().unwrap(), &event(None, "a", false));
    assert!(matches!(events[1], Err(StreamError::Broken(_))));
    assert_eq!(events.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn silence_is_timed_only_while_the_reader_waits() {
    let pieces = async_stream::stream! {
        yield Ok(Bytes::from_static(b"data: x\n\n"));
        std::future::pending::<()>().await;
    };
    let mut events = parse(pieces.boxed(), limits(100), LargeEvent::new(&"key:ann".into()));
    assert_eq!(events.next().await.unwrap().unwrap().data, "x");
    sleep(Duration::from_secs(600)).await;
    let waiting_since = Instant::now();
    assert!(matches!(events.next().await, Some(Err(StreamError::Silent(_)))));
    assert_eq!(waiting_since.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_large_events_of_one_owner_keep_no_other_one_waiting() {
    const PIECE: &[u8] = &[b'x'; 3 << 20];
    let stream = |owner: &str| {
        let bytes = stream::iter([PIECE; 3])
            .map(|piece| Ok(Bytes::from_static(piece)))
            .chain(stream::pending());
        parse_raw(bytes.boxed(), limits(64 << 20), LargeEvent::new(&owner.into())).boxed()
    };
    // Two events, which are not whole, keep all permits of their owner. A server that sends nothing more ends by its timeout.
    let mut held = [stream("key:large"), stream("key:large")];
    for events in &mut held {
        assert!(events.next().now_or_never().is_none());
    }
    let begun = Instant::now();
    let mut third = stream("key:large");
    let refused = third.next().await.unwrap().unwrap_err().to_string();
    assert_eq!(refused, "too many large events are being read: one waited for 30s");
    assert_eq!(begun.elapsed(), LARGE_EVENT_TIMEOUT);
    let mut other = LargeEvent::new(&"key:bob".into());
    assert!(other.has_bytes(9 << 20).now_or_never().is_some_and(|waited| waited.is_ok()));
}
