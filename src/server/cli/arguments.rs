//! The command line.

use std::{error::Error, path::PathBuf};

use clap::{Args, Parser, Subcommand};
use serde_json::Value;

use super::model_choice::{ModelChoice, each_name, key_variables, read_model, read_provider};
use crate::server::{
    Server,
    options::{ConfigError, Loaded, Sources},
};
use agui_llm::host::KnownProvider;

/// An HTTP server that speaks AG-UI, the protocol between AI agents and the user interfaces in front of them.
#[derive(Debug, Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) options: CommandOptions,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serves until SIGTERM or Ctrl-C; the default command
    Serve(CommandOptions),
    /// Writes a configuration file with one agent, and .env with its key; asks for values that no
    /// option gives
    Init(InitArguments),
    /// Checks the configuration and exits
    Check(CheckArguments),
    /// Prints the JSON Schema of the configuration, by which editors complete and check it
    Schema,
    /// Asks a running server for its health; the exit code is 0 if it is alive
    Health(CommandOptions),
    /// Plays the requests of recordings to an agent and compares the events; the exit code is 1 if something differs
    Test(TestArguments),
    /// Writes detached runs that a server has stored as recordings
    Export(ExportArguments),
    /// Deletes all threads of a principal from the store; SQLite needs a stopped server
    Erase(EraseArguments),
    /// Chats with an agent, in a terminal or a pipe; in a pipe, the exit code is 1 if a run did not succeed
    Chat(ChatArguments),
    /// Sends an agent one message and prints its answer; the exit code is 1 if the run did not succeed
    Run(RunArguments),
}

#[derive(Debug, Args)]
pub(super) struct InitArguments {
    /// The new file
    #[arg(value_name = "FILE", default_value = "my.toml")]
    pub(super) file: PathBuf,
    #[arg(long, value_name = "NAME", value_parser = read_provider)]
    #[arg(help = format!("{}; by default that of the model", each_name("")))]
    pub(super) provider: Option<&'static KnownProvider>,
    /// The model's name at the provider; without --provider, as with `agui-server --model`
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// The name of the agent
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// The tools of the agent, separated by commas
    #[arg(long, value_name = "NAMES")]
    pub(super) tools: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ChatArguments {
    /// A server or one agent's endpoint; without one, the configured agents are run in this process
    #[arg(id = "server", value_name = "URL")]
    pub(super) url: Option<String>,
    /// The agent; by default the server's default agent
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,
    #[command(flatten)]
    pub(super) target: TargetOptions,
}

/// Options of the target of runs.
#[derive(Debug, Default, Args)]
pub(super) struct TargetOptions {
    /// The environment variable with the key for the server
    #[arg(long, value_name = "NAME", requires = "server")]
    pub(super) key_env: Option<String>,
    /// The configuration file; without one, the demo agent is run
    #[arg(long, short, value_name = "FILE", conflicts_with = "server")]
    pub(super) config: Option<PathBuf>,
    /// Writes the log of the configured agents, at this level
    #[arg(long, value_name = "LEVEL", conflicts_with = "server")]
    pub(super) log: Option<String>,
    /// A claim of the caller for the configured agents, as a token would state it: JSON, or a text; can be repeated
    #[arg(long = "claim", value_name = "NAME=VALUE", value_parser = read_claim, conflicts_with = "server")]
    pub(super) claims: Vec<(String, Value)>,
}

fn read_claim(text: &str) -> Result<(String, Value), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// The agent
    pub(super) agent: String,
    /// The message; without one, or with -, the standard input
    pub(super) text: Option<String>,
    /// A server; without one, the configured agents are run in this process
    #[arg(id = "server", long = "server", value_name = "URL")]
    pub(super) url: Option<String>,
    /// The thread that the message continues; by default a new one
    #[arg(long, value_name = "ID", requires = "server")]
    pub(super) thread: Option<String>,
    /// Prints the whole document: messages, outcome, state, usage
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) target: TargetOptions,
}

#[derive(Debug, Args)]
pub(super) struct ExportArguments {
    /// The id of the thread
    pub(super) thread: String,
    /// The id of the run; without one, all detached runs among the thread's 20 newest runs that have ended
    pub(super) run: Option<String>,
    /// The server
    #[arg(long, value_name = "URL")]
    pub(super) from: String,
    /// The environment variable with the key for the server
    #[arg(long, value_name = "NAME")]
    pub(super) key_env: Option<String>,
    /// The file, or the folder in which each recording has its usual name; by default the standard output
    #[arg(long, short, value_name = "FILE|DIR")]
    pub(super) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct TestArguments {
    /// The folder of the recordings
    pub(super) dir: PathBuf,
    /// A server or one agent's endpoint; without one, the configured agents are run in this process
    #[arg(id = "server", long = "against", value_name = "URL")]
    pub(super) against: Option<String>,
    /// The agent to test; by default the recorded one
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,
    /// The file for the results in JUnit's format
    #[arg(long, value_name = "FILE")]
    pub(super) junit: Option<PathBuf>,
    /// Writes the new events into the recordings that differ
    #[arg(long)]
    pub(super) update: bool,
    /// The time limit of a run, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(super) timeout_secs: u64,
    #[command(flatten)]
    pub(super) target: TargetOptions,
}

#[derive(Debug, Args)]
pub(super) struct EraseArguments {
    /// The owner of the threads, such as key:web, jwt:https://id.example.com/:ada, or none on a server without authentication
    #[arg(value_name = "OWNER", required_unless_present = "thread")]
    pub(super) owner: Option<String>,
    /// Deletes one thread, by its number in the store, as `agui-server check --store` names it
    #[arg(long, value_name = "NUMBER", conflicts_with = "owner")]
    pub(super) thread: Option<i64>,
    #[command(flatten)]
    pub(super) options: CommandOptions,
}

#[derive(Debug, Args)]
pub(super) struct CheckArguments {
    /// The configuration file, as with --config
    #[arg(value_name = "FILE", conflicts_with_all = ["config", "model"])]
    pub(super) file: Option<PathBuf>,
    /// Also connects to the MCP servers, names their tools and the pages that these show, and asks each model for a word
    #[arg(long)]
    pub(super) online: bool,
    /// Also reads everything that is stored, and names damaged rows
    #[arg(long)]
    pub(super) store: bool,
    #[command(flatten)]
    pub(super) options: CommandOptions,
}

/// Options that override the configuration file.
#[derive(Debug, Default, Args)]
pub(super) struct CommandOptions {
    /// The configuration file; without one, the demo agent is served
    #[arg(long, short, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[arg(help = format!(
        "The model of an agent without a configuration file, such as gpt-4o or ollama/qwen3; its key is in one of {}",
        key_variables()
    ))]
    #[arg(long, value_name = "[PROVIDER/]MODEL", value_parser = read_model, conflicts_with = "config")]
    pub(super) model: Option<ModelChoice>,
    /// The address and port to listen on, such as 127.0.0.1:8080 or localhost:8080
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
    /// The agent behind /send-message
    #[arg(long, value_name = "NAME")]
    pub(super) default_agent: Option<String>,
    /// The folder in which each run is recorded
    #[arg(long, value_name = "DIR")]
    pub(super) record: Option<PathBuf>,
    /// A log level, or a filter as in RUST_LOG
    #[arg(long, value_name = "LEVEL")]
    pub(super) log: Option<String>,
}

impl CommandOptions {
    /// Reads the options: this command line, the environment, and the file or an agent with the named model.
    ///
    /// # Errors
    /// The errors that are found, as one.
    pub(super) fn read(self) -> Result<Loaded, ConfigError> {
        let flags = [
            ("--listen", "server.listen", self.listen),
            ("--default-agent", "default_agent", self.default_agent),
            ("--record", "record.dir", self.record.map(|path| path.display().to_string())),
            ("--log", "log.level", self.log),
        ];
        let sources = Sources {
            file: self.config,
            environment: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            flags: flags
                .into_iter()
                .filter_map(|(flag, option, value)| Some((flag, option, value?)))
                .collect(),
        };
        match self.model {
            Some(model) => {
                sources.load_text("--model", &model.configuration("assistant", &["current_time"]))
            }
            None => sources.load(),
        }
    }

    /// Loads the configuration and checks everything but the store. Returns it with advice about
    /// options that providers will refuse.
    pub(super) fn load(self) -> Result<(Loaded, Vec<String>), Box<dyn Error>> {
        let loaded = self.read()?;
        let warnings = Server::from_config(&loaded)?.check()?;
        Ok((loaded, warnings))
    }
}
