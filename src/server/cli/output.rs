//! Prints lines without control sequences. A closed pipe, as in `agui-server test | head`, is no
//! error: `println!` would panic.

use std::{
    error::Error,
    io::{Write as _, stderr, stdout},
};

use super::printable::printable;

pub(super) fn print_line(text: &str) {
    let _ = writeln!(stdout().lock(), "{}", printable(text));
}

pub(super) fn print_warning(text: &str) {
    let _ = writeln!(stderr().lock(), "agui-server: warning: {}", printable(text));
}

pub(super) fn print_error(error: &dyn Error) {
    let _ = writeln!(stderr().lock(), "agui-server: {}", printable(&error.to_string()));
}
