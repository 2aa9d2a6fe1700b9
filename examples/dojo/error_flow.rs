//! `/error_flow`: runs that fail, and what a page learns of it.
//!
//! | message | what happens |
//! |---|---|
//! | `midway` | it fails in the middle of a sentence, which the server ends properly |
//! | `secret` | it fails with an error that is nobody's business: only the log has the details |
//! | `panic` | it panics, which ends this run and nothing else |
//! | anything else | it fails at once, with a code and a message for the page |

use agui_server::{
    agent::{Agent, AgentError, RunContext, emit::TextMessage, event_stream},
    protocol::RunAgentInput,
};

pub(crate) fn agent() -> impl Agent {
    |input: RunAgentInput, _: RunContext| {
        let wish = input.last_user_text().unwrap_or_default().trim().to_owned();
        event_stream(async_stream::try_stream! {
            match wish.as_str() {
                "midway" => {
                    let message = TextMessage::new();
                    yield message.start();
                    yield message.delta("This sentence is not going to");
                }
                "secret" => Err(std::io::Error::other("the vault's door is open"))?,
                "panic" => panic!("the dojo was asked to panic"),
                _ => {}
            }
            Err(AgentError::new("dojo_error", "This run was asked to fail, and did."))?;
        })
    }
}
