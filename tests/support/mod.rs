//! Shared code of the integration tests. The programs `chaos` and `memory`, the fuzz targets and some unit tests include
//! files of this folder.

pub mod checker;
pub mod conversation;
pub mod named_events;
pub mod pgbouncer;
pub mod poll;
pub mod postgres;
pub mod provider;
pub mod recordings;
pub mod refusals;
pub mod running;
pub mod server;
pub mod small_disk;
pub mod streams;
pub mod strict;
pub mod tokens;
