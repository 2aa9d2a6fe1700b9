//! The chat from its first line to its last: messages and commands in a terminal, one message a line in a pipe.

use std::{error::Error, io};

use super::{
    command::{self, HELP, Input},
    console::{Console, Style},
    conversation::ChatConversation,
    questions,
    server::ListedThread,
    turn::{ChatEndpoint, ChatRunEnd},
    view::View,
};
use crate::{
    protocol::{RunAgentInput, ThreadId},
    server::cli::{
        printable::{excerpt, printable_line},
        server_client::ServerClient,
        target::RunTarget,
    },
};

const MAX_TITLE_CHARS: usize = 60;

pub(super) struct Session<'a> {
    target: &'a RunTarget,
    server: ServerClient<'a>,
    endpoint: ChatEndpoint,
    agent: Option<String>,
    conversation: ChatConversation,
    view: View,
    console: &'a mut Console,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        target: &'a RunTarget,
        agent: Option<String>,
        console: &'a mut Console,
    ) -> Result<Self, Box<dyn Error>> {
        let endpoint = ChatEndpoint::new(target.url(agent.as_deref())?, agent.as_deref(), target)?;
        let server = ServerClient::new(target)?;
        Ok(Self {
            target,
            server,
            endpoint,
            agent,
            conversation: ChatConversation::new(),
            view: View::default(),
            console,
        })
    }

    /// Chats until the input ends. Returns whether all runs of a pipe succeeded; `true` in a terminal.
    pub(super) async fn run(mut self) -> Result<bool, Box<dyn Error>> {
        match self.console.is_interactive() {
            true => self.chat().await.map(|()| true),
            false => self.answer_lines().await,
        }
    }

    /// Answers each line of a pipe. An interrupt ends the chat: a pipe has no person who could answer it.
    async fn answer_lines(&mut self) -> Result<bool, Box<dyn Error>> {
        let mut has_succeeded = true;
        while let Some(line) = self.console.next_line().await? {
            if line.trim().is_empty() {
                continue;
            }
            let input = self.conversation.say(&line);
            match self.run_once(input).await? {
                ChatRunEnd::Success => {}
                ChatRunEnd::Failed => has_succeeded = false,
                ChatRunEnd::Cancelled => return Ok(false),
                ChatRunEnd::Interrupted(interrupts) => {
                    for interrupt in &interrupts {
                        questions::show(interrupt, &self.conversation.messages, self.console);
                    }
                    self.console.note(Style::Failure, "Questions can be answered in a terminal only; the chat ends.");
                    return Ok(false);
                }
            }
        }
        Ok(has_succeeded)
    }

    async fn chat(&mut self) -> Result<(), Box<dyn Error>> {
        self.console.note(Style::Dim, "/help shows the commands.");
        while let Some(line) = self.console.ask("> ").await? {
            self.console.remember(&line)?;
            let mut step = self.obey(&line).await?;
            loop {
                match step {
                    NextStep::Prompt => break,
                    NextStep::End => return Ok(()),
                    NextStep::Run(input) => {
                        if let ChatRunEnd::Interrupted(interrupts) = self.run_once(*input).await? {
                            self.conversation.interrupts = interrupts;
                        }
                        step = self.answer_interrupts().await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn run_once(&mut self, input: RunAgentInput) -> io::Result<ChatRunEnd> {
        let Self { endpoint, server, conversation, view, console, .. } = self;
        endpoint.run(input, server, conversation, view, console).await
    }

    /// Does what a typed line says.
    async fn obey(&mut self, line: &str) -> io::Result<NextStep> {
        match command::read(line) {
            Input::Nothing => {}
            Input::Message(text) => return Ok(NextStep::run(self.conversation.say(text))),
            Input::Edit(text) => return self.edit(text).await,
            Input::Retry => match self.conversation.retry() {
                Some(input) => return Ok(NextStep::run(input)),
                None => self.console.note(Style::Failure, "No message has been sent yet."),
            },
            Input::Threads => match self.choose_thread().await {
                Ok(()) => return self.answer_interrupts().await,
                Err(error) => self.console.note(Style::Failure, &format!("/threads: {error}")),
            },
            Input::New => {
                (self.conversation, self.view) = (ChatConversation::new(), View::default());
                self.console.note(Style::Dim, "A new thread begins.");
            }
            Input::Help => self.console.note(Style::Plain, HELP),
            Input::Quit => return Ok(NextStep::End),
            Input::Unknown(text) => {
                let text = excerpt(text, MAX_TITLE_CHARS);
                self.console.note(Style::Failure, &format!("{text:?} is no command; /help shows the commands."));
            }
        }
        Ok(NextStep::Prompt)
    }

    async fn edit(&mut self, text: Option<&str>) -> io::Result<NextStep> {
        let Some(last) = self.conversation.last_user_text() else {
            self.console.note(Style::Failure, "No message has been sent yet.");
            return Ok(NextStep::Prompt);
        };
        let text = match text {
            Some(text) => text.to_owned(),
            None => {
                self.console.note(Style::Dim, &format!("Your last message: {last}"));
                match self.console.ask("The new text (Enter keeps the old one): ").await? {
                    None => return Ok(NextStep::End),
                    Some(text) if text.trim().is_empty() => return Ok(NextStep::Prompt),
                    Some(text) => text,
                }
            }
        };
        Ok(self.conversation.edit(&text).map_or(NextStep::Prompt, NextStep::run))
    }

    /// Asks for the answers to the open interrupts, if there are any.
    async fn answer_interrupts(&mut self) -> io::Result<NextStep> {
        let Self { conversation, console, .. } = self;
        if conversation.interrupts.is_empty() {
            return Ok(NextStep::Prompt);
        }
        Ok(match questions::ask_all(&conversation.interrupts, &conversation.messages, console).await? {
            Some(entries) => NextStep::run(conversation.resume(entries)),
            None => NextStep::End,
        })
    }

    /// Lists the server's threads and continues the chosen one, with its agent.
    async fn choose_thread(&mut self) -> Result<(), Box<dyn Error>> {
        let list = self.server.threads(self.agent.as_deref()).await?;
        if list.threads.is_empty() {
            self.console.note(Style::Plain, "The server has no threads.");
            return Ok(());
        }
        for (number, thread) in (1..).zip(&list.threads) {
            self.console.note(Style::Plain, &format!("{number:3}. {}", title(thread)));
        }
        if list.next.is_some() {
            self.console.note(Style::Dim, "     Older threads are not shown.");
        }
        let line = self.console.ask("Number of the thread to continue (Enter for none): ").await?;
        let Some(line) = line.filter(|line| !line.trim().is_empty()) else { return Ok(()) };
        let number = line.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = number.and_then(|number| list.threads.get(number)).ok_or("there is no thread of this number")?;
        self.continue_thread(&chosen.thread_id).await
    }

    async fn continue_thread(&mut self, id: &ThreadId) -> Result<(), Box<dyn Error>> {
        let thread = self.server.thread(id).await?;
        let url = self.target.route(&["agents", &thread.agent, "send-message"])?;
        self.endpoint = ChatEndpoint::new(url, Some(&thread.agent), self.target)?;
        self.view = View::default();
        if thread.before.is_some() {
            self.console.note(Style::Dim, "Older messages are not shown.");
        }
        let messages = thread.messages.into();
        self.view.show_history(&messages, self.console)?;
        if thread.active_run_id.is_some() {
            self.console.note(Style::Dim, "A run of this thread has not ended; your message may have to wait for it.");
        }
        self.conversation = ChatConversation::stored(thread.thread_id, messages, thread.state, thread.interrupts);
        Ok(())
    }
}

/// What to do next.
enum NextStep {
    Prompt,
    Run(Box<RunAgentInput>),
    End,
}

impl NextStep {
    fn run(input: RunAgentInput) -> Self {
        Self::Run(Box::new(input))
    }
}

fn title(thread: &ListedThread) -> String {
    let title = thread.title.as_deref().unwrap_or(&thread.thread_id);
    // Seconds and their fractions are left out.
    let time = thread.updated_at.chars().take("2026-11-23T14:00".len()).collect::<String>().replace('T', " ");
    let (title, agent) = (printable_line(&excerpt(title, MAX_TITLE_CHARS)), printable_line(&thread.agent));
    format!("{title} ({agent}, {})", printable_line(&time))
}
