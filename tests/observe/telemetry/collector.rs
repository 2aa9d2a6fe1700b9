//! A collector that receives spans by OTLP over HTTP, and its own reader of their protocol buffers
//! (<https://github.com/open-telemetry/opentelemetry-proto>, `trace.proto`).

use std::{
    collections::BTreeMap,
    io::Read as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

#[derive(Debug, Clone)]
pub struct Span {
    pub trace_id: String,
    pub span_id: String,
    /// Empty for the first span of a trace.
    pub parent_id: String,
    pub state: String,
    pub name: String,
    /// 1: internal, 2: server, 3: client.
    pub kind: u64,
    pub begin: u64,
    pub end: u64,
    pub attributes: BTreeMap<String, Value>,
    /// 2: error.
    pub status: u64,
    /// The attributes of the program that has sent the span.
    pub resource: BTreeMap<String, Value>,
}

#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    headers: Vec<HeaderMap>,
}

#[derive(Default)]
struct Inner {
    received: Mutex<Received>,
    refuses: AtomicBool,
}

/// A collector that runs until it is dropped.
pub struct Collector {
    pub url: String,
    inner: Arc<Inner>,
    server: AbortHandle,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Arc::<Inner>::default();
        let router =
            Router::new().route("/v1/traces", post(receive_spans)).with_state(inner.clone());
        let server =
            tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { url, inner, server }
    }

    /// Answers requests by an error from now on, or no longer.
    pub fn refuse(&self, refuses: bool) {
        self.inner.refuses.store(refuses, Ordering::SeqCst);
    }

    pub fn spans(&self) -> Vec<Span> {
        self.inner.received.lock().unwrap().spans.clone()
    }

    /// The headers of requests with spans.
    pub fn headers(&self) -> Vec<HeaderMap> {
        self.inner.received.lock().unwrap().headers.clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Receives spans. Refused spans are kept, too.
async fn receive_spans(
    State(inner): State<Arc<Inner>>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    let spans = read_spans(&unpacked(&headers, &body));
    let mut received = inner.received.lock().unwrap();
    received.spans.extend(spans);
    received.headers.push(headers);
    if inner.refuses.load(Ordering::SeqCst) {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    }
}

fn unpacked(headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    if headers.get("content-encoding").is_none() {
        return body.to_vec();
    }
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut bytes).unwrap();
    bytes
}

enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl Field<'_> {
    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("bytes in the place of a number"),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => panic!("a number in the place of bytes"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    fn hex(&self) -> String {
        self.bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

/// The fields of a message, with their numbers.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content)
            }
            5 => {
                let (number, rest) = bytes.split_at(4);
                bytes = rest;
                Field::Number(u32::from_le_bytes(number.try_into().unwrap()).into())
            }
            kind => panic!("unknown kind of field {kind}"),
        };
        fields.push((tag >> 3, field));
    }
    fields
}

fn read_spans(body: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for (_, resource_spans) in fields(body) {
        let mut resource = BTreeMap::new();
        for (number, part) in fields(resource_spans.bytes()) {
            match number {
                1 => resource = attributes(part.bytes(), 1),
                2 => {
                    let of_scope = fields(part.bytes());
                    let sent = of_scope.iter().filter(|(number, _)| *number == 2);
                    spans.extend(sent.map(|(_, span)| Span {
                        resource: resource.clone(),
                        ..read_span(span.bytes())
                    }));
                }
                _ => {}
            }
        }
    }
    spans
}

fn read_span(bytes: &[u8]) -> Span {
    let all = fields(bytes);
    let field =
        |number: u64| all.iter().find(|(other, _)| *other == number).map(|(_, field)| field);
    let text = |number| field(number).map(Field::text).unwrap_or_default();
    let hex = |number| field(number).map(Field::hex).unwrap_or_default();
    let number = |of| field(of).map_or(0, Field::number);
    let status = field(15).map(|status| fields(status.bytes())).unwrap_or_default();
    Span {
        trace_id: hex(1),
        span_id: hex(2),
        parent_id: hex(4),
        state: text(3),
        name: text(5),
        kind: number(6),
        begin: number(7),
        end: number(8),
        attributes: attributes(bytes, 9),
        status: status.iter().find(|(number, _)| *number == 3).map_or(0, |(_, code)| code.number()),
        resource: BTreeMap::new(),
    }
}

/// The attributes of a message, which are its fields of this number.
fn attributes(bytes: &[u8], number: u64) -> BTreeMap<String, Value> {
    let all = fields(bytes);
    let pairs = all.iter().filter(|(other, _)| *other == number).map(|(_, pair)| {
        let parts = fields(pair.bytes());
        (parts[0].1.text(), parts.get(1).map_or(Value::Null, |(_, value)| any_value(value.bytes())))
    });
    pairs.collect()
}

fn any_value(bytes: &[u8]) -> Value {
    match fields(bytes).first() {
        Some((1, text)) => text.text().into(),
        Some((2, is_true)) => (is_true.number() != 0).into(),
        Some((3, number)) => json!(number.number().cast_signed()),
        Some((4, number)) => json!(f64::from_bits(number.number())),
        Some((5, list)) => {
            fields(list.bytes()).iter().map(|(_, value)| any_value(value.bytes())).collect()
        }
        _ => Value::Null,
    }
}
