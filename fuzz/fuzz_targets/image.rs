//! Images that are scaled down: the header says how much memory that takes, before a decoder believes it.
#![no_main]

use std::panic::{self, AssertUnwindSafe};

use agui_llm::testing::{image_bytes, scale};
use agui_server_fuzz::{bounded, peak_memory};
use libfuzzer_sys::fuzz_target;

/// The largest image that is decoded here, in bytes of memory; so that an input takes some milliseconds.
const MAX_BYTES: u64 = 16 << 20;
/// What decoders take for an image of few pixels: tables, buffers of input, and a part of a lossy WebP, which claims up to 16 MiB.
const BASE_MEMORY: u64 = 20 << 20;

fuzz_target!(|data: &[u8]| {
    let Some(bytes) = bounded(data.len(), || image_bytes(data)).filter(|bytes| *bytes <= MAX_BYTES) else { return };
    // A decoder that panics fails for its image alone: the server works on a thread that catches it.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let used = peak_memory(|| _ = panic::catch_unwind(AssertUnwindSafe(|| scale(data, 64))));
    panic::set_hook(hook);
    assert!(used as u64 <= bytes + BASE_MEMORY, "the header says {bytes} bytes of memory, and {used} were taken");
});
