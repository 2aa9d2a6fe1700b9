//! What the other crates of the workspace need of this one. Not a part of the interface: it changes without notice.

pub use crate::error::StoreResult;
pub use crate::json_len::json_len;
pub use crate::model::{branch_of, now};
