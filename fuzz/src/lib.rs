//! Shared code of the fuzz targets: bounds on time and memory, and ways to make large or structured inputs of few bytes.
//!
//! A property that does not hold is a panic, which libFuzzer reports with the input.

mod choices;
mod pieces;
pub mod wire;

/// The checker of streams and the generators of events that the property tests use.
#[path = "../../tests/support"]
pub mod support {
    pub mod checker;
    pub mod streams;
}

use std::{borrow::Cow, time::Duration};

use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};

pub use self::{
    choices::Choices,
    pieces::{check_answers, pieces, response},
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// CPU time that every input may take: above the cost of a page fault storm, far below a hang.
const BASE_TIME: Duration = Duration::from_millis(50);
/// CPU time for each byte. The instrumented code takes 20 to 200 ns, so that only superlinear code exceeds it.
const TIME_PER_BYTE: Duration = Duration::from_micros(5);
const BASE_MEMORY: usize = 4 << 20;
/// A JSON value of two bytes, such as `1,`, takes about 100 bytes in a growing list.
const MEMORY_PER_BYTE: usize = 160;

/// Does the work for an input of `length` bytes, and panics if it takes more time or memory than such an input may.
///
/// The time is that of this thread's CPU, and the work is repeated before it counts as slow, so that other processes
/// on the machine make no difference.
pub fn bounded<T>(length: usize, work: impl Fn() -> T) -> T {
    let most = BASE_TIME + TIME_PER_BYTE.saturating_mul(u32::try_from(length).unwrap_or(u32::MAX));
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let (result, mut time) = timed(&work);
    let used = HEAP.peak_usage().saturating_sub(before);
    assert!(used <= BASE_MEMORY + MEMORY_PER_BYTE * length, "{length} bytes of input took {used} bytes of memory");
    for _ in 0..2 {
        if time > most {
            time = time.min(timed(&work).1);
        }
    }
    assert!(time <= most, "{length} bytes of input took {time:?}, and may take {most:?}");
    result
}

/// Does the work, and returns the most memory that it took.
pub fn peak_memory(work: impl FnOnce()) -> usize {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    work();
    HEAP.peak_usage().saturating_sub(before)
}

fn timed<T>(work: impl Fn() -> T) -> (T, Duration) {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.try_into().unwrap_or(0))
    };
    let begin = now();
    let result = work();
    (result, now().saturating_sub(begin))
}

/// Returns the input, or a large one that its first three bytes describe.
///
/// If the first byte is one of 1 to 8, a part of the rest is repeated 4 to the power of that byte times. The next two
/// bytes select the part. So a short input can be a long list, a deep nesting or many events, which shows code that
/// is not linear. Text begins with other bytes and is taken as it is.
pub fn amplified(data: &[u8]) -> Cow<'_, [u8]> {
    /// Enough for quadratic code to exceed its time. More would only be slower.
    const MAX_BYTES: usize = 64 << 10;
    let [power @ 1..=8, from, to, rest @ ..] = data else { return data.into() };
    let at = |byte: u8| usize::from(byte) * rest.len() / 255;
    let (from, to) = (at(*from.min(to)), at(*from.max(to)));
    let part = &rest[from..to];
    let times = (1 << (2 * power)).min(MAX_BYTES / part.len().max(1));
    [&rest[..from], &part.repeat(times), &rest[to..]].concat().into()
}

/// Returns whether a text that is sent to a client or written to a log is short, whatever the input was.
pub fn is_short(text: &str) -> bool {
    text.len() < 1000
}
