//! `agui-server chat`: a client for AG-UI endpoints in a terminal or a pipe.
//!
//! `turn` sends a request and shows the events of the run, with the reader of remote agents. `conversation` holds what
//! the requests consist of. Everything that is shown passes through `printable`, because a server's texts may be
//! hostile.

mod command;
mod console;
mod conversation;
mod form;
mod questions;
mod server;
mod session;
mod turn;
mod view;

use std::error::Error;

use self::{console::Console, session::Session};
use super::{
    arguments::ChatArguments,
    output::print_error,
    target::{Target, TargetArguments},
};

/// Chats until the input ends. Returns `false` if the chat broke off, or if a run of a pipe did not succeed.
///
/// # Errors
/// The chat cannot begin.
pub(super) fn run_chat(arguments: ChatArguments) -> Result<bool, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut console = Console::open()?;
        let target = Target::open(TargetArguments {
            url_argument: "URL",
            url: arguments.url.as_deref(),
            is_server: arguments.agent.is_some(),
            key_env: arguments.key_env.as_deref(),
            config: arguments.config,
            log: arguments.log,
        })
        .await?;
        let result = match Session::new(&target, arguments.agent, &mut console) {
            Ok(session) => Ok(session.run().await.unwrap_or_else(|error| {
                print_error(&*error);
                false
            })),
            Err(error) => Err(error),
        };
        target.close().await;
        result
    })
}
