//! The JSON Schema of the configuration, by which editors complete and check a file.
//!
//! The derives on the option structs exist in tests only, so that builds do not take longer. A test makes the schema from
//! them and the options of `config/default.toml` from the schema, compares both with the files, and writes these again if
//! `UPDATE_SCHEMA` is set. A new option needs a doc comment, which editors and `config/default.toml` show.

/// The JSON Schema (draft 7) of a configuration file. It judges the file alone, without environment variables and flags.
pub(crate) const JSON_SCHEMA: &str = include_str!("../../../../config/schema.json");

#[cfg(test)]
mod default_file_tests;
#[cfg(test)]
mod generator_tests;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(super) use generator_tests::AnyAgent;
