//! The `agui-server` command. Its code is in [`agui_server::internal`].

use std::process::ExitCode;

/// Each stream makes hundreds of small allocations that live as long as its run. jemalloc packs them more densely than
/// the system's allocator, which saves memory and time.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    agui_server::internal::run()
}
