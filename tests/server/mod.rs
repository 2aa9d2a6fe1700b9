//! Whole servers: the library as applications use it, the command with its configuration, and several servers on one store.

mod chat;
mod check_online;
mod configurations;
mod documents;
#[cfg(target_os = "linux")]
mod first_agent;
mod library;
#[cfg(feature = "object-store")]
mod object_store;
mod process;
mod recordings;
mod replicas;
mod run_once;
