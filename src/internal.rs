//! What the command, and tests of the root package, need of its private modules. Not a part of the
//! interface: it changes without notice.

pub use crate::clients::named_events::encoder::NamedEventEncoder;
#[cfg(feature = "cli")]
pub use crate::server::cli::run;
