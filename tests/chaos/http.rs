//! A strict HTTP/1.1 client that uses no code of the server. It uses one connection for each request, checks the framing
//! of a chunk before it returns the chunk, and accepts no byte after the response.

use std::{net::SocketAddr, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Longer than any pause of a server that works: it sends a comment every 15 seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(40);
const MAX_CHUNK: usize = 64 * 1024 * 1024;

/// The response is incomplete or is not HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Broken(pub(crate) String);

impl From<std::io::Error> for Broken {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

fn broken<T>(reason: impl Into<String>) -> Result<T, Broken> {
    Err(Broken(reason.into()))
}

/// A response whose body has not been read.
pub(crate) struct Response {
    pub(crate) status: u16,
    framing: Framing,
    stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Framing {
    Chunked,
    Length(usize),
}

/// Sends a request and reads the head of its response.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    key: &str,
    body: Option<&Value>,
) -> Result<Response, Broken> {
    let mut stream = TcpStream::connect(address).await?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut response =
        Response { status: 0, framing: Framing::Length(0), stream, buffer: Vec::new() };
    response.read_head().await?;
    Ok(response)
}

impl Response {
    async fn read_head(&mut self) -> Result<(), Broken> {
        let line = self.line().await?;
        // If the proxy repeats `1 20`, the line of a 200 is `HTTP/1.1 201 200 OK`.
        let is_whole = |(status, reason): &(&str, &str)| {
            status.len() == 3 && !reason.contains(|c: char| c.is_ascii_digit())
        };
        let status =
            line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split_once(' ')).filter(is_whole);
        let status = status.and_then(|(status, _)| status.parse().ok());
        let Some(status) = status else { return broken(format!("the status line is {line:?}")) };
        self.status = status;
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(());
            }
            let Some((name, value)) = line.split_once(':') else {
                return broken(format!("the header {line:?}"));
            };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                let Ok(length) = value.parse() else {
                    return broken(format!("the length {value:?}"));
                };
                self.framing = Framing::Length(length);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                if value != "chunked" {
                    return broken(format!("the encoding {value:?}"));
                }
                self.framing = Framing::Chunked;
            }
        }
    }

    async fn fill(&mut self) -> Result<(), Broken> {
        match timeout(READ_TIMEOUT, self.stream.read_buf(&mut self.buffer)).await {
            Err(_) => broken(format!("the server sent nothing for {READ_TIMEOUT:?}")),
            Ok(Ok(0)) => broken("the connection closed within the response"),
            Ok(read) => Ok(read.map(|_| ())?),
        }
    }

    async fn take(&mut self, count: usize) -> Result<Vec<u8>, Broken> {
        while self.buffer.len() < count {
            self.fill().await?;
        }
        let rest = self.buffer.split_off(count);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    async fn line(&mut self) -> Result<String, Broken> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|bytes| bytes == b"\r\n") {
                let mut line = self.take(end + 2).await?;
                line.truncate(end);
                return String::from_utf8(line).or_else(|_| broken("a line is not UTF-8"));
            }
            if self.buffer.len() > 16 * 1024 {
                return broken("a line is too long");
            }
            self.fill().await?;
        }
    }

    /// Returns the next chunk of a body, or `None` after the end of a complete response.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        let chunk = match self.framing {
            Framing::Length(0) => Vec::new(),
            Framing::Length(length) => {
                self.framing = Framing::Length(0);
                let body = self.take(length).await?;
                // Repeated bytes show only at the end.
                self.end().await?;
                body
            }
            Framing::Chunked => {
                let line = self.line().await?;
                let length =
                    usize::from_str_radix(&line, 16).ok().filter(|length| *length <= MAX_CHUNK);
                let Some(length) = length else {
                    return broken(format!("the chunk size {line:?}"));
                };
                let mut chunk = self.take(length + 2).await?;
                if !chunk.ends_with(b"\r\n") {
                    return broken("a chunk is longer than its size");
                }
                chunk.truncate(length);
                chunk
            }
        };
        if !chunk.is_empty() {
            return Ok(Some(chunk));
        }
        self.end().await.map(|()| None)
    }

    /// The connection is not reused, so nothing may follow.
    async fn end(&mut self) -> Result<(), Broken> {
        if self.buffer.is_empty() {
            let read = timeout(READ_TIMEOUT, self.stream.read_buf(&mut self.buffer)).await;
            if read.is_err() {
                return broken("the connection was not closed after the response");
            }
        }
        if self.buffer.is_empty() { Ok(()) } else { broken("bytes follow the response") }
    }

    /// Reads a whole body as text.
    pub(crate) async fn text(mut self) -> Result<(u16, String), Broken> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend(chunk);
        }
        Ok((self.status, String::from_utf8(body).or_else(|_| broken("the body is not UTF-8"))?))
    }
}

/// An event as it came.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Its number, in a stream that has numbers.
    pub(crate) number: Option<u64>,
    pub(crate) json: String,
    pub(crate) value: Value,
}

impl Event {
    pub(crate) fn name(&self) -> &str {
        self.value["type"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self.name(), "RUN_FINISHED" | "RUN_ERROR")
    }

    pub(crate) fn is_continuation(&self) -> bool {
        self.value["name"] == "agui-server.run_continued"
    }

    pub(crate) fn is_snapshot(&self) -> bool {
        matches!(self.name(), "MESSAGES_SNAPSHOT" | "STATE_SNAPSHOT")
    }
}

/// The events of a response. Dropped early, the connection is closed.
pub(crate) struct EventStream {
    response: Response,
    text: String,
}

impl EventStream {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, text: String::new() }
    }

    /// Returns the next event, or `None` after the end of a complete response.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Broken> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let event = parse(frame);
                self.text = rest.to_owned();
                match event {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            let Some(chunk) = self.response.chunk().await? else {
                return if self.text.is_empty() {
                    Ok(None)
                } else {
                    broken("the response ended within an event")
                };
            };
            // All texts of these tests are ASCII.
            let Ok(text) = String::from_utf8(chunk) else { return broken("an event is not UTF-8") };
            self.text.push_str(&text);
        }
    }
}

/// Panics if a frame is not an event: a response that is valid HTTP has only events and comments.
fn parse(frame: &str) -> Option<Event> {
    let field =
        |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let json = field("data")?;
    let value =
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in the event {json:?}"));
    let number = field("id")
        .map(|number| number.parse().unwrap_or_else(|_| panic!("the number of {frame:?}")));
    Some(Event { number, json: json.to_owned(), value })
}
