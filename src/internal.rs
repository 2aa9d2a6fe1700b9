//! Items of hidden modules for this repository's command, tests and benches. Not a part of the interface:
//! they change without notice.

pub use crate::http::dialects::named_events::encoder::NamedEventEncoder;
#[cfg(feature = "cli")]
pub use crate::server::cli::run;
#[cfg(feature = "config")]
pub use agui_agents::script::Script;
#[cfg(feature = "upstream")]
pub use agui_base::upstream::{client, direct_client, events};
pub use agui_protocol::{
    decode::{DecodeError, Decoded, decode},
    encode::{Encoder, Proto, Sse, StreamVersion},
    patch::{AppliedPatch, PatchError, apply, is_pointer},
};
pub use agui_run::{Guard, Run, Transcript};
pub use agui_store::{
    files::{
        DeletedFile, FILE_OVERHEAD, FileDeletion, FileLimit, FileLimits, FileObjects, FileStore,
        FileStream, ImageSize, NewFile, PutFile, SecretName, StoredFile,
    },
    model::now,
    sealed::{ExpectedValue, SealedStore, SealedValue},
};
#[cfg(feature = "llm")]
pub use agui_tools::http::{HttpMethod, HttpTool, HttpToolOptions};
