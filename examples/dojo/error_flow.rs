//! `/error_flow`: failed runs, and the error that the page gets.
//!
//! | message | result |
//! |---|---|
//! | `midway` | the run fails in the middle of a message, which the server closes |
//! | `secret` | the run fails with an internal error: its details are in the log only |
//! | `panic` | the agent panics, which ends this run only |
//! | anything else | the run fails at once, with a code and a message for the page |

use agui_server::prelude::*;

use crate::parts::Pace;

pub(crate) async fn run(input: RunAgentInput, out: Emitter, _: Pace) -> Result<(), AgentError> {
    let failure = AgentError::new("dojo_error", "This run was asked to fail, and did.");
    match input.last_user_text().unwrap_or_default().trim() {
        "midway" => {
            let mut message = out.text_message().await?;
            message.push("This sentence is not going to").await?;
            Err(failure)
        }
        "secret" => Err(std::io::Error::other("the vault's door is open").into()),
        "panic" => panic!("the dojo was asked to panic"),
        _ => Err(failure),
    }
}
