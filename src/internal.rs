//! What this repository's command, tests, benches and fuzz targets need of private rooms. Not a part of the interface: it
//! changes without notice.

#[cfg(feature = "config")]
pub use crate::agent::builtin::script::Script;
#[cfg(feature = "cli")]
pub use crate::server::cli::run;
#[cfg(feature = "llm")]
pub use crate::tools::http::{HttpMethod, HttpTool, HttpToolOptions, fuzzing::fill};
#[cfg(feature = "upstream")]
pub use crate::upstream::{client, direct_client, events};
pub use crate::{
    http::dialects::named_events::encoder::NamedEventEncoder,
    protocol::{
        decode::{DecodeError, Decoded, decode},
        encode::{Encoder, Proto, Sse, StreamVersion},
        patch::{AppliedPatch, PatchError, apply, is_pointer},
    },
    run::{Guard, Run, Transcript},
    store::{
        files::{
            DeletedFile, FILE_OVERHEAD, FileDeletion, FileLimit, FileLimits, FileObjects,
            FileStore, FileStream, ImageSize, NewFile, PutFile, SecretName, StoredFile,
        },
        model::now,
        sealed::{ExpectedValue, SealedStore, SealedValue},
    },
};
