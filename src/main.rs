//! The `agui-server` command: arguments, configuration, logs, server.

mod cli;
mod health;

use std::{error::Error, process::ExitCode};

use agui_server::{
    Server,
    config::{Loaded, LogFormat},
    telemetry::logs,
};
use clap::Parser as _;
use tokio::net::TcpListener;

use crate::cli::{Cli, Command, Options};

/// Hundreds of streams are hundreds of small things each that live for as long as a run and are looked at with every
/// event: this allocator lays them closer together than the system's, which costs less memory and less time.
#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The configuration is wrong.
const MISCONFIGURED: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let (result, code) = match cli.command.unwrap_or(Command::Serve(cli.options)) {
        Command::Check(options) => (check(options), MISCONFIGURED),
        Command::Health(options) => (health::ask(options), 1),
        Command::Serve(options) => match prepare(options) {
            Ok(loaded) => (serve(&loaded), 1),
            Err(error) => (Err(error), MISCONFIGURED),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&*error);
            ExitCode::from(code)
        }
    }
}

/// Reads everything that can be wrong before there is anything to serve.
fn prepare(options: Options) -> Result<Loaded, Box<dyn Error>> {
    let loaded = options.sources().load()?;
    logs::check(&loaded.config.log.level)
        .map_err(|error| loaded.origin.error(&["log", "level"], &error.to_string()))?;
    // Agents and keys; the store is opened by the server alone.
    Server::from_config(&loaded)?;
    Ok(loaded)
}

fn check(options: Options) -> Result<(), Box<dyn Error>> {
    let loaded = prepare(options)?;
    let agents = loaded.config.agents.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    say(&format!("the configuration is fine: agents {agents}, listening on {}", loaded.config.server.listen));
    Ok(())
}

fn serve(loaded: &Loaded) -> Result<(), Box<dyn Error>> {
    let format = match loaded.config.log.format {
        LogFormat::Text => logs::Format::Text,
        LogFormat::Json => logs::Format::Json,
    };
    logs::init(&loaded.config.log.level, format)?;
    // Each stream is an open file, and the 1,024 that a process usually begins with are few.
    if let Err(error) = rlimit::increase_nofile_limit(u64::MAX) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let address = loaded.config.server.listen;
        let listener =
            TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
        let server = Server::open(loaded).await?;
        server.serve_on(listener, agui_server::shutdown_signal()).await;
        Ok(())
    })
}

#[allow(clippy::print_stdout, reason = "the answer of a command")]
fn say(text: &str) {
    println!("{text}");
}

#[allow(clippy::print_stderr, reason = "there is no log yet, or no longer")]
fn complain(error: &dyn Error) {
    eprintln!("agui-server: {error}");
}
