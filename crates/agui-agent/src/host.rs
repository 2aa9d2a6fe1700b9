//! Items that only the other crates of the workspace need. Not a part of the interface: they change without notice.

pub use crate::a2ui::{RunSurfaces, SurfaceFault};
pub use crate::context::{ContextParts, Forwarded, RunIdentity};
pub use crate::journal::{Journal, RunJournal};
pub use crate::logins::{ConnectedAccount, LoginError, Logins, OpenedLink, Returned};
pub use crate::principal::{is_valid_name, owner_of};
pub use crate::registry::{AgentEntry, AgentRegistry};
pub use crate::upstream_ids::{Conversation, UpstreamKey};
