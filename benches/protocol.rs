//! Time to decode an input and to encode an event: `cargo bench --bench protocol`
//!
//! The inputs include those of hostile and outdated clients. Goals: less than 1 ms for 1,000 ordinary messages, and
//! tens of milliseconds for each of the others.

#![allow(missing_docs)]

use std::{fmt::Write as _, hint::black_box};

use agui_protocol::{
    decode::decode,
    encode::{Proto, Sse},
};
use agui_server::protocol::{Event, event::TextMessageContent};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn input(messages: &str, rest: &str) -> Vec<u8> {
    format!(r#"{{"threadId":"t","runId":"r","messages":[{messages}]{rest}}}"#).into_bytes()
}

fn messages(count: usize, role: &str, chars: usize) -> String {
    let content = "x".repeat(chars);
    let mut text = String::new();
    for n in 0..count {
        let comma = if n == 0 { "" } else { "," };
        let id = format_args!("00000000-0000-4000-8000-{n:012}");
        let _ = write!(text, r#"{comma}{{"id":"{id}","role":"{role}","content":"{content}"}}"#);
    }
    text
}

fn decoding(c: &mut Criterion) {
    let mut unknown = String::new();
    for n in 0..40_000 {
        let _ = write!(unknown, ",\"unknown{n}\":{n}");
    }
    let mut group = c.benchmark_group("decode");
    for (name, body) in [
        ("1,000 messages of 200 bytes", input(&messages(1000, "user", 200), "")),
        ("24,000 short messages", input(&messages(24_000, "user", 2), "")),
        ("1.5 MB of messages of unknown roles", input(&messages(15_000, "narrator", 20), "")),
        ("40,000 unknown members", input("", &unknown)),
        ("20,000 numbers of state", input("", &format!(",\"state\":[{}0]", "1.5,".repeat(20_000)))),
    ] {
        group.throughput(Throughput::Bytes(body.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| decode(black_box(&body)).map(|decoded| decoded.input.messages.len()))
        });
    }
    group.finish();
}

fn encoding(c: &mut Criterion) {
    let event = Event::from(TextMessageContent::new(
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "token number 000000 ",
    ));
    let mut group = c.benchmark_group("encode a delta");
    let mut out = Vec::with_capacity(256);
    let mut sse = Sse::default();
    group.bench_function("Server-Sent Events", |b| {
        b.iter(|| {
            out.clear();
            sse.event(black_box(&event), &mut out);
        });
    });
    let mut proto = Proto::default();
    group.bench_function("protobuf", |b| {
        b.iter(|| {
            out.clear();
            proto.event(black_box(&event), &mut out);
        });
    });
    group.finish();
}

criterion_group!(benches, decoding, encoding);
criterion_main!(benches);
