//! `agui-server chat`: a client for AG-UI endpoints in a terminal or a pipe.
//!
//! `chat_run` sends a request and shows the events of the run, with the reader of remote agents.
//! `conversation` holds the parts of requests. Everything that is shown passes through
//! `printable`, because a server's texts may be hostile.

mod attach;
mod chat_run;
mod command;
mod console;
mod conversation;
mod form;
mod line_editor;
mod questions;
mod session;
mod view;

use std::error::Error;

use self::{console::Console, session::Session};
use super::{
    arguments::ChatArguments,
    output::print_error,
    target::{RunTarget, UrlMeaning},
};

/// Chats until the input ends. Returns `false` if the chat broke off, or if a run of a pipe did not succeed.
///
/// # Errors
/// The chat cannot begin.
pub(super) async fn run_chat(arguments: ChatArguments) -> Result<bool, Box<dyn Error>> {
    let meaning =
        if arguments.agent.is_some() { UrlMeaning::Server } else { UrlMeaning::ServerOrEndpoint };
    let target =
        RunTarget::open("URL", arguments.url.as_deref(), meaning, &arguments.target).await?;
    // Until now, Ctrl-C ends the process.
    let mut console = Console::open()?;
    let result = match Session::new(&target, arguments.agent, &mut console) {
        Ok(session) => Ok(session.run().await.unwrap_or_else(|error| {
            print_error(&*error);
            false
        })),
        Err(error) => Err(error),
    };
    target.close().await;
    result
}
