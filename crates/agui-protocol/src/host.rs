//! What the other crates of the workspace need of this one. Not a part of the interface: it changes without notice.

pub use crate::input::DEEP_THINKING;
pub use crate::messages::{MessageIndex, find_call};
pub use crate::patch::JsonPatch;
pub use crate::version::{PROTOCOL_VERSION, VersionSupport, classify_version};
