//! What a command prints, without what a terminal would obey. A reader that has gone, as in `agui-server test | head`, changes
//! nothing: `println!` would panic.

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
