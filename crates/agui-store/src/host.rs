//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

pub use crate::error::StoreResult;
pub use crate::json_len::json_len;
pub use crate::model::{branch_of, now};
