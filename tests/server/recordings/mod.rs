//! The subcommands that read recordings: `agui-server test` and `agui-server export`.

mod desk;
mod exported;
mod tested;
