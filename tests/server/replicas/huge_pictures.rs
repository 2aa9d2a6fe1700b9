//! Pictures that declare more memory than the process has, 1 GiB: in a message, in a tool's answer,
//! in a stored file, and in a detached run whose server is killed. A decoder that allocates the
//! declared memory would end the process, for all callers.

use std::{fs, io::Write as _, path::Path, process::Command, sync::LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::{Compression, Crc, write::ZlibEncoder};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    ask, ask_detached,
    client::{Received, Replica},
    poll::poll_until,
    provider::{Answer, Provider, Step},
    server::BINARY,
};

/// 35 bytes, and 65,535 × 65,535 pixels.
const GIF: &[u8] =
    b"GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b";
/// A row of 16,383 pixels, and metadata with a declared size of 4 GiB.
const METADATA: &[u8] = b"RIFF\x30\0\0\0WEBPVP8X\x0a\0\0\0\x08\0\0\0\xfe\x3f\0\0\0\0\
    VP8 \x0a\0\0\0\x10\x02\0\x9d\x01\x2a\xff\x3f\x01\0EXIF\xff\xff\xff\xff";

/// Bits, the lowest first.
#[derive(Default)]
struct Bits(Vec<bool>);

impl Bits {
    fn add(&mut self, value: u64, count: u32) -> &mut Self {
        self.0.extend((0..count).map(|bit| value >> bit & 1 == 1));
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let byte =
            |bits: &[bool]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        self.0.chunks(8).map(byte).collect()
    }
}

/// A lossless WebP: a row of 8,001 pixels, and 20,224 groups of tables, of which each has 10 bytes in the file and 68 KB in memory.
fn tables() -> Vec<u8> {
    let mut bits = Bits::default();
    // The size, and a cache of 2,048 colours. Blocks of 512 pixels, whose colour is the number of their group.
    bits.add(8_000, 14).add(0, 14).add(0, 5).add(1, 1).add(11, 4).add(1, 1).add(7, 3).add(0, 1);
    for symbol in [0xff, 0x4e, 0, 0, 0] {
        bits.add(0b101, 3).add(symbol, 8);
    }
    for _ in 0..0x4f00 {
        // 2,048 codes of 11 bits, of which no length takes a bit; four tables of one code.
        bits.add(0, 1).add(11, 4).add(0, 42).add(1, 3).add(1, 1).add(5, 3).add(2_046, 12);
        for _ in 0..4 {
            bits.add(1, 4);
        }
    }
    let data = [vec![0x2f], bits.bytes()].concat();
    let length = data.len() as u32;
    [b"RIFF", &(length + 12).to_le_bytes()[..], b"WEBPVP8L", &length.to_le_bytes(), &data].concat()
}

/// Less than 40 KB, and 1,152 MB of pixels: 16,970 × 16,970 with two colours, one of them transparent.
static PNG: LazyLock<Vec<u8>> = LazyLock::new(png);

fn png() -> Vec<u8> {
    const SIDE: u32 = 16_970;
    let chunk = |kind: &[u8; 4], data: &[u8]| {
        let mut crc = Crc::new();
        crc.update(kind);
        crc.update(data);
        [&(data.len() as u32).to_be_bytes(), &kind[..], data, &crc.sum().to_be_bytes()].concat()
    };
    let header = [&SIDE.to_be_bytes()[..], &SIDE.to_be_bytes(), &[1, 3, 0, 0, 0]].concat();
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::best());
    for _ in 0..SIDE {
        rows.write_all(&[0; 1 + SIDE.div_ceil(8) as usize]).unwrap();
    }
    let rows = rows.finish().unwrap();
    let chunks = [
        chunk(b"IHDR", &header),
        chunk(b"PLTE", &[0, 0, 0, 255, 255, 255]),
        chunk(b"tRNS", &[128]),
        chunk(b"IDAT", &rows),
        chunk(b"IEND", b""),
    ];
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()
}

/// Starts the command with 1 GiB of address space.
fn start(folder: &Path, provider: &Provider) -> Replica {
    let (file, url) = (folder.join("config.toml"), provider.url());
    let config = format!(
        r#"
[agents.clerk]
kind = "llm"
provider = "anthropic"
model = "claude-sonnet-5-5"
base_url = "{url}"
api_key_env = "AGUI_KEY_CLERK"
tools = ["draw"]
[tools.draw]
kind = "http"
description = "Draws"
url = "{url}/draw"
"#
    );
    fs::write(&file, config).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 1048576 && exec \"$0\" \"$@\"", BINARY]);
    let data = folder.to_str().unwrap();
    let environment = [
        ("AGUI_SERVER__DATA_DIR", data),
        ("AGUI_KEY_CLERK", "key"),
        ("AGUI_THREADS__LEASE_SECS", "3"),
    ];
    Replica::launch(command, &["--config", file.to_str().unwrap()], &environment)
}

/// An answer of the model with one block.
fn answer(block: Value, delta: Value, reason: &str) -> Answer {
    Answer::anthropic(&[
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 0}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ])
}

fn says(text: &str) -> Answer {
    answer(
        json!({"type": "text", "text": ""}),
        json!({"type": "text_delta", "text": text}),
        "end_turn",
    )
}

fn draws() -> Answer {
    let block = json!({"type": "tool_use", "id": "c1", "name": "draw", "input": {}});
    answer(block, json!({"type": "input_json_delta", "partial_json": "{}"}), "tool_use")
}

/// Adds the pictures to the message of an input.
fn with_pictures(mut input: Value) -> Value {
    let picture = |bytes: &[u8], mime_type: &str| json!({"type": "image", "source": {"type": "data", "value": STANDARD.encode(bytes), "mimeType": mime_type}});
    input["messages"][0]["content"] = json!([
        {"type": "text", "text": "look"},
        picture(GIF, "image/gif"),
        picture(&PNG, "image/png"),
        picture(METADATA, "image/webp"),
        picture(&tables(), "image/webp"),
    ]);
    input
}

fn is_success(events: &[Received]) -> bool {
    events.last().is_some_and(|last| last.event["outcome"]["type"] == "success")
}

/// Returns the number of pictures that a request to the model has, and of notes in their places.
fn sent(body: &Value) -> (usize, usize) {
    let text = body.to_string();
    (
        text.matches("\"base64\"").count(),
        text.matches("the image is too large, and cannot be scaled down").count(),
    )
}

#[tokio::test]
async fn a_picture_that_claims_more_memory_than_there_is_ends_no_server() {
    assert!(GIF.len() == 35 && PNG.len() < 40_000, "{} bytes", PNG.len());
    let (folder, provider) = (tempdir().unwrap(), Provider::start().await);
    let server = start(folder.path(), &provider);

    provider.answer(says("I see."));
    let run = server.run(&with_pictures(ask("message", ""))).await.rest().await;
    assert!(is_success(&run), "{:?}", run.last());
    assert_eq!(sent(&provider.requests()[0].body), (0, 4), "{}", provider.requests()[0].body);
    let skipped =
        run.iter().filter(|event| event.event["name"] == "agui-server.attachment_skipped");
    assert_eq!(skipped.count(), 4);

    provider.answer(draws());
    provider.answer(Answer::new(200, [GIF]).header("content-type", "image/gif"));
    provider.answer(says("Done."));
    let run = server.run(&ask("tool", "draw")).await.rest().await;
    assert!(is_success(&run), "{:?}", run.last());
    let of_tool = &provider.requests()[3].body;
    assert_eq!(
        sent(of_tool),
        (0, 5),
        "the files of the first message, and the answer of the tool: {of_tool}"
    );

    provider.answer(Answer::stream([""]).then(Step::Stall));
    let started = server.run(&with_pictures(ask_detached("detached", ""))).await;
    poll_until("the model is asked", async || (provider.requests().len() == 5).then_some(())).await;
    server.kill();
    drop(started);
    provider.answer(says("Again."));
    let server = start(folder.path(), &provider);
    let thread = server.until_status("finished").await;
    assert_eq!(thread["runs"][0]["takeovers"], 1);
    assert_eq!(sent(&provider.requests()[5].body), (0, 9));
}
