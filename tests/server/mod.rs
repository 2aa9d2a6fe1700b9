//! Whole servers: the library as applications use it, the command with its configuration, and several servers on one store.

mod chat;
mod check_online;
mod configurations;
mod documents;
#[cfg(target_os = "linux")]
mod first_agent;
mod library;
mod process;
mod recordings;
mod replicas;
mod run_once;
