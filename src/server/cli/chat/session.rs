//! The chat from its first line to its last: messages and commands in a terminal, one message a line in a pipe.

use std::{
    error::Error,
    io,
    ops::ControlFlow::{self, Break, Continue},
};

use serde::Deserialize;
use serde_json::Value;

use super::{
    attach::attach,
    chat_run::{ChatEndpoint, ChatRunEnd},
    command::{self, HELP, Input},
    console::{Console, Style},
    conversation::ChatConversation,
    questions,
    view::show_history,
};
use crate::server::cli::{
    printable::{excerpt, printable_line},
    target::RunTarget,
};
use agui_base::text::NAME_CHARS;
use agui_protocol::{ContentPart, Interrupt, Message, RunAgentInput, RunId, ThreadId};

const MAX_LISTED_THREADS: &str = "20";

/// The next step: a run, or the prompt. A break ends the chat.
type NextStep = ControlFlow<(), Option<RunAgentInput>>;

/// The newest threads of a server.
#[derive(Deserialize)]
struct ListedThreads {
    threads: Vec<ListedThread>,
    /// Present if there are more.
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedThread {
    thread_id: ThreadId,
    agent: String,
    title: Option<String>,
    updated_at: String,
}

/// A thread with its newest messages.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContinuedThread {
    thread_id: ThreadId,
    agent: String,
    messages: Vec<Message>,
    state: Option<Value>,
    interrupts: Vec<Interrupt>,
    active_run_id: Option<RunId>,
    /// Absent if these are all messages.
    before: Option<String>,
}

pub(super) struct Session<'a> {
    endpoint: ChatEndpoint<'a>,
    agent: Option<String>,
    conversation: ChatConversation,
    /// The files of the next message.
    attached: Vec<ContentPart>,
    console: &'a mut Console,
}

impl<'a> Session<'a> {
    pub(super) fn new(
        target: &'a RunTarget,
        agent: Option<String>,
        console: &'a mut Console,
    ) -> Result<Self, Box<dyn Error>> {
        let endpoint = ChatEndpoint::new(target.url(agent.as_deref())?, agent.as_deref(), target)?;
        Ok(Self {
            endpoint,
            agent,
            conversation: ChatConversation::new(),
            attached: Vec::new(),
            console,
        })
    }

    /// Chats until the input ends. Returns whether all runs of a pipe succeeded; `true` in a terminal.
    pub(super) async fn run(mut self) -> Result<bool, Box<dyn Error>> {
        if self.console.is_interactive {
            self.chat().await.map(|()| true)
        } else {
            self.answer_lines().await
        }
    }

    /// Answers each line of a pipe. An interrupt ends the chat: a pipe has no person who could answer it.
    async fn answer_lines(&mut self) -> Result<bool, Box<dyn Error>> {
        let mut has_succeeded = true;
        while let Some(line) = self.console.next_line().await? {
            if line.trim().is_empty() {
                continue;
            }
            let input = self.conversation.say(&line, Vec::new());
            match self.endpoint.run(input, &mut self.conversation, self.console).await? {
                ChatRunEnd::Success => {}
                ChatRunEnd::Failed => has_succeeded = false,
                ChatRunEnd::Cancelled => return Ok(false),
                ChatRunEnd::Interrupted(interrupts) => {
                    for interrupt in &interrupts {
                        questions::show(interrupt, &self.conversation.messages, self.console);
                    }
                    self.console.note(
                        Style::Failure,
                        "Questions can be answered in a terminal only; the chat ends.",
                    );
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
            while let Continue(Some(input)) = step {
                let end = self.endpoint.run(input, &mut self.conversation, self.console).await?;
                if let ChatRunEnd::Interrupted(interrupts) = end {
                    self.conversation.interrupts = interrupts;
                }
                step = self.reply_to_interrupts().await?;
            }
            if step.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Executes a typed line.
    async fn obey(&mut self, line: &str) -> io::Result<NextStep> {
        match command::read(line) {
            Input::Nothing => {}
            Input::Message(text) => {
                let files = std::mem::take(&mut self.attached);
                return Ok(Continue(Some(self.conversation.say(text, files))));
            }
            Input::Attach(Some(path)) => self.attach(path).await,
            Input::Attach(None) => {
                self.console.note(Style::Failure, "/attach: expected the path of a file")
            }
            Input::Edit(text) => return self.edit(text).await,
            Input::Retry => match self.conversation.retry() {
                Some(input) => return Ok(Continue(Some(input))),
                None => self.console.note(Style::Failure, "No message has been sent yet."),
            },
            Input::Threads => match self.choose_thread().await {
                Ok(()) => return self.reply_to_interrupts().await,
                Err(error) => self.console.note(Style::Failure, &format!("/threads: {error}")),
            },
            Input::New => {
                self.conversation = ChatConversation::new();
                self.console.note(Style::Dim, "A new thread begins.");
            }
            Input::Help => self.console.note(Style::Plain, HELP),
            Input::Quit => return Ok(Break(())),
            Input::Unknown(text) => {
                let text = excerpt(text, NAME_CHARS);
                self.console.note(
                    Style::Failure,
                    &format!("{text:?} is no command; /help shows the commands."),
                );
            }
        }
        Ok(Continue(None))
    }

    /// Reads a file for the next message, unless Ctrl-C comes first.
    async fn attach(&mut self, path: &str) {
        let Self { endpoint, attached, console, .. } = self;
        let read = tokio::select! {
            read = attach(path, endpoint.target) => read,
            () = console.interrupted() => Err("the upload was cancelled".into()),
        };
        match read {
            Ok((part, line)) => {
                attached.push(part);
                console.note(Style::Dim, &line);
            }
            Err(error) => console.note(Style::Failure, &format!("/attach: {error}")),
        }
    }

    async fn edit(&mut self, text: Option<&str>) -> io::Result<NextStep> {
        let Some(last) = self.conversation.last_user_text() else {
            self.console.note(Style::Failure, "No message has been sent yet.");
            return Ok(Continue(None));
        };
        let text = match text {
            Some(text) => text.to_owned(),
            None => {
                self.console.note(Style::Dim, &format!("Your last message: {last}"));
                match self.console.ask("The new text (Enter keeps the old one): ").await? {
                    None => return Ok(Break(())),
                    Some(text) if text.trim().is_empty() => return Ok(Continue(None)),
                    Some(text) => text,
                }
            }
        };
        Ok(Continue(self.conversation.edit(&text)))
    }

    /// Asks for the replies to the open interrupts, if there are any.
    async fn reply_to_interrupts(&mut self) -> io::Result<NextStep> {
        let Self { conversation, console, .. } = self;
        if conversation.interrupts.is_empty() {
            return Ok(Continue(None));
        }
        Ok(
            match questions::ask_all(&conversation.interrupts, &conversation.messages, console)
                .await?
            {
                Some(entries) => Continue(Some(conversation.resume(entries))),
                None => Break(()),
            },
        )
    }

    /// Lists the server's threads and continues the chosen one, with its agent.
    async fn choose_thread(&mut self) -> Result<(), Box<dyn Error>> {
        let mut query = vec![("limit", MAX_LISTED_THREADS)];
        query.extend(self.agent.as_deref().map(|agent| ("agent", agent)));
        let list: ListedThreads = self.endpoint.target.read(&["threads"], &query).await?;
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
        let chosen = number
            .and_then(|number| list.threads.get(number))
            .ok_or("there is no thread of this number")?;
        self.continue_thread(&chosen.thread_id).await
    }

    async fn continue_thread(&mut self, id: &ThreadId) -> Result<(), Box<dyn Error>> {
        let target = self.endpoint.target;
        let thread: ContinuedThread = target.read(&["threads", id], &[]).await?;
        let url = target.route(&["agents", &thread.agent, "send-message"])?;
        self.endpoint = ChatEndpoint::new(url, Some(&thread.agent), target)?;
        if thread.before.is_some() {
            self.console.note(Style::Dim, "Older messages are not shown.");
        }
        let messages = thread.messages.into();
        show_history(&messages, self.console)?;
        if thread.active_run_id.is_some() {
            self.console.note(
                Style::Dim,
                "A run of this thread has not ended; your message may have to wait for it.",
            );
        }
        self.conversation =
            ChatConversation::stored(thread.thread_id, messages, thread.state, thread.interrupts);
        Ok(())
    }
}

fn title(thread: &ListedThread) -> String {
    let title = thread.title.as_deref().unwrap_or(&thread.thread_id);
    // Seconds and their fractions are left out.
    let time = thread
        .updated_at
        .chars()
        .take("2026-11-23T14:00".len())
        .collect::<String>()
        .replace('T', " ");
    let (title, agent) =
        (printable_line(&excerpt(title, NAME_CHARS)), printable_line(&thread.agent));
    format!("{title} ({agent}, {})", printable_line(&time))
}
