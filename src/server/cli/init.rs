//! `agui-server init`: writes a configuration with one agent, and a file with its key. In a
//! terminal it asks for values that no flag gives; elsewhere these have their defaults.

use std::{
    error::Error,
    fs::OpenOptions,
    io::{self, IsTerminal as _, Write as _},
    path::Path,
};

use super::{
    arguments::InitArguments,
    model_choice::{ModelChoice, OLLAMA, each_name, providers, read_model, read_provider},
    output::print_line,
};
use crate::server::Server;
use agui_base::private_file::private_file_options;
use agui_llm::host::KnownProvider;

pub(super) fn init(arguments: InitArguments) -> Result<(), Box<dyn Error>> {
    let InitArguments { file, provider, model, name, tools } = arguments;
    if file.exists() {
        return Err(format!("{} exists: name another file", file.display()).into());
    }
    let choice = match (provider, model) {
        (None, Some(model)) => read_model(&model)?,
        (provider, model) => {
            let provider = provider.map_or_else(ask_provider, Ok)?;
            let model = model.map_or_else(|| ask("model", provider.usual_model), Ok)?;
            ModelChoice { provider, model }
        }
    };
    let name = name.map_or_else(|| ask("name of the agent", "assistant"), Ok)?;
    let tools = tools.map_or_else(|| ask("tools, with commas", "current_time"), Ok)?;
    let tools: Vec<_> = tools.split(',').map(str::trim).filter(|tool| !tool.is_empty()).collect();
    // The name and the tools, with a provider that needs no key: the key may be missing yet.
    let keyless = ModelChoice { provider: &OLLAMA, ..choice.clone() }.configuration(&name, &tools);
    Server::from_toml_str(&keyless)?.check()?;
    let configuration = choice.configuration(&name, &tools);
    let missing_key =
        choice.provider.key_env.filter(|variable| std::env::var_os(variable).is_none());
    let key = missing_key
        .map(|variable| Ok::<_, Box<dyn Error>>((variable, ask_key(variable)?)))
        .transpose()?;

    write_new(&file, OpenOptions::new(), &configuration)?;
    print_line(&format!("wrote {}", file.display()));
    if let Some((variable, key)) = key {
        let keys = Path::new(".").join(file.with_file_name(".env"));
        if keys.exists() {
            print_line(&format!(
                "{} exists and is left as it is: it needs {variable}",
                keys.display()
            ));
        } else {
            write_new(&keys, private_file_options(), &format!("{variable}={key}\n"))?;
            let lacks = if key.is_empty() { ": write the key behind the =" } else { "" };
            print_line(&format!("wrote {}{lacks}", keys.display()));
        }
        print_line(&format!("set -a; . {}; set +a", keys.display()));
    }
    print_line(&format!("agui-server --config {}", file.display()));
    Ok(())
}

/// Asks for the provider. Proposes the one whose key is in the environment.
fn ask_provider() -> Result<&'static KnownProvider, Box<dyn Error>> {
    let has_key = |provider: &&'static KnownProvider| {
        provider.key_env.is_some_and(|key| std::env::var_os(key).is_some())
    };
    let found = providers().find(has_key);
    if found.is_none() && !io::stdin().is_terminal() {
        return Err("--provider or --model is missing".into());
    }
    let usual = found.or_else(|| providers().next()).map_or("", |provider| provider.name);
    let name = ask(&format!("provider: {}", each_name("")), usual)?;
    Ok(read_provider(&name).map_err(|problem| format!("provider: {problem}"))?)
}

fn ask_key(variable: &str) -> Result<String, Box<dyn Error>> {
    let key = hidden(|| ask(&format!("{variable}, not shown, may be left empty"), ""))?;
    // These characters mean the same to a shell and to Docker.
    let is_plain = key.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:/+=".contains(c));
    if is_plain {
        Ok(key)
    } else {
        Err("a key has letters, digits and -_.:/+= only: nothing was written".into())
    }
}

/// Asks for a value. Without a terminal or an input, returns the usual one.
fn ask(question: &str, usual: &str) -> Result<String, Box<dyn Error>> {
    if !io::stdin().is_terminal() {
        return Ok(usual.to_owned());
    }
    write!(io::stderr(), "{question} [{usual}]: ")?;
    let mut answer = String::new();
    if io::stdin().read_line(&mut answer)? == 0 {
        return Err("no answer: nothing was written".into());
    }
    Ok(Some(answer.trim()).filter(|answer| !answer.is_empty()).unwrap_or(usual).to_owned())
}

/// Asks while the terminal shows no typed character, also no line feed.
#[cfg(unix)]
fn hidden<T>(ask: impl FnOnce() -> T) -> T {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let Ok(shown) = tcgetattr(io::stdin()) else { return ask() };
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &hidden);
    let answer = ask();
    let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &shown);
    let _ = writeln!(io::stderr());
    answer
}

#[cfg(not(unix))]
fn hidden<T>(ask: impl FnOnce() -> T) -> T {
    ask()
}

fn write_new(path: &Path, mut options: OpenOptions, text: &str) -> Result<(), Box<dyn Error>> {
    let written = options
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()).into())
}
