//! The wires of further families of clients: each with its types, its encoding and its routes.

pub(crate) mod copilotkit;
pub mod named_events;
pub(crate) mod tanstack;

#[cfg(test)]
mod tests;
