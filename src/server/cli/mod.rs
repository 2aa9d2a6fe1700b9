//! The `agui-server` command: arguments, configuration, logs, server. `src/main.rs` only calls [`run`], so that the
//! binary compiles nothing of the library again.

mod arguments;
mod chat;
mod check;
mod erase;
mod export;
mod health;
mod init;
mod model_choice;
mod output;
mod printable;
mod run;
mod server_client;
mod target;
mod test;

use std::{
    error::Error,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;
use tokio::net::TcpListener;

use self::{
    arguments::{Cli, Command},
    output::print_error,
};
use crate::server::{
    Server,
    options::{JSON_SCHEMA, Loaded},
    shutdown_signal,
};
use agui_observe::telemetry::export as telemetry_export;

/// The exit code for a fault of the configuration.
const EXIT_MISCONFIGURED: u8 = 2;

/// Runs the command with the arguments of the process.
pub fn run() -> ExitCode {
    // Before any other process is started: what started this one may have left files open.
    agui_sandbox::host::close_descriptors_on_exec();
    let cli = Cli::parse();
    // The code of an error, and whether the command succeeded.
    let (code, result) = match cli.command.unwrap_or(Command::Serve(cli.options)) {
        Command::Check(arguments) => (EXIT_MISCONFIGURED, block_on(check::check(arguments))),
        Command::Schema => {
            (1, io::stdout().write_all(JSON_SCHEMA.as_bytes()).map(|()| true).map_err(Into::into))
        }
        Command::Init(arguments) => (EXIT_MISCONFIGURED, init::init(arguments).map(|()| true)),
        Command::Health(options) => (1, health::check_health(options).map(|()| true)),
        Command::Test(arguments) => {
            (EXIT_MISCONFIGURED, block_on(test::test_recordings(arguments)))
        }
        Command::Export(arguments) => (1, block_on(export::export_runs(arguments)).map(|()| true)),
        Command::Erase(arguments) => (1, block_on(erase::erase(arguments)).map(|()| true)),
        Command::Run(arguments) => (EXIT_MISCONFIGURED, block_on(run::run_once(arguments))),
        Command::Chat(arguments) => (EXIT_MISCONFIGURED, block_on(chat::run_chat(arguments))),
        Command::Serve(options) => match options.load() {
            Ok((loaded, _)) => (1, serve(&loaded).map(|()| true)),
            Err(error) => (EXIT_MISCONFIGURED, Err(error)),
        },
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print_error(&*error);
            ExitCode::from(code)
        }
    }
}

fn block_on<T>(
    command: impl Future<Output = Result<T, Box<dyn Error>>>,
) -> Result<T, Box<dyn Error>> {
    tokio::runtime::Runtime::new()?.block_on(command)
}

fn serve(loaded: &Loaded) -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let export = {
        let _entered = runtime.enter();
        telemetry_export::start(&loaded.config.log)?
    };
    // Each connection is an open file, and the usual limit is 1,024.
    let max_files = rlimit::increase_nofile_limit(u64::MAX).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot raise the limit of open files");
        u64::MAX
    });
    // The rest is for the store, tools and providers.
    let max_connections = usize::try_from(max_files - max_files / 8).unwrap_or(usize::MAX);
    runtime.block_on(async {
        let address = loaded.config.server.listen;
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| format!("cannot listen on {address}: {error}"))?;
        let mut server = Server::open(loaded).await?;
        server.connections.max = server.connections.max.min(max_connections);
        server.serve_on(listener, shutdown_signal()).await?;
        export.shut_down().await;
        Ok(())
    })
}
