//! What a command prints.

use std::error::Error;

#[allow(clippy::print_stdout, reason = "the result of a command")]
pub(super) fn print_line(text: &str) {
    println!("{text}");
}

#[allow(clippy::print_stderr, reason = "logging has not started")]
pub(super) fn print_warning(text: &str) {
    eprintln!("agui-server: warning: {text}");
}

#[allow(clippy::print_stderr, reason = "logging has not started, or has ended")]
pub(super) fn print_error(error: &dyn Error) {
    eprintln!("agui-server: {error}");
}
