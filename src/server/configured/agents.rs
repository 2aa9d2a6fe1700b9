//! The agents of a server: those of its configuration, and those that were added in Rust.

use std::{path::Path, sync::Arc, time::Duration};

use indexmap::IndexMap;

use super::{
    agent_models::AgentModels,
    models::{RustModels, read_file, setup_fault},
    server_tools::ServerTools,
};
use crate::{
    agent::{
        A2ui, A2uiAgent, Agent,
        builtin::{Echo, Remote, Replay, Script},
    },
    base::InvalidOption,
    llm::LlmAgent,
    server::options::{
        A2uiSwitch, AgentConfig, AgentKind, Config, ConfigError, LlmConfig, LlmOptions, Loaded, Origin, SANDBOX,
    },
    tools::{ToolRegistry, builtin, http::HttpTool, mcp::McpServer, sandbox::Sandbox},
};

/// Agents by the name that they are served under.
pub(super) type NamedAgents = IndexMap<String, Arc<dyn Agent>>;

/// The demo script, which is served unless a configuration names other agents.
const DEMO: &str = include_str!("../../../config/scripts/demo.toml");
/// The path of the demo script in the default configuration.
const DEMO_PATH: &str = "scripts/demo.toml";
/// The prefix of an agent's name in a list of tools.
const AGENT_PREFIX: &str = "agent:";
/// The tool by which a model changes the shared state.
const UPDATE_STATE: &str = "update_state";

/// What a configuration describes.
pub(in crate::server) struct BuiltAgents {
    pub(in crate::server) agents: NamedAgents,
    pub(in crate::server) tools: ServerTools,
    /// What providers will refuse, for people.
    pub(in crate::server) warnings: Vec<String>,
}

/// Builds all agents, the configured ones first, and the tools that they use.
pub(super) fn build_agents(
    loaded: Option<&Loaded>,
    rust_agents: &NamedAgents,
    rust_models: &RustModels,
) -> Result<BuiltAgents, ConfigError> {
    let Some(Loaded { config, origin }) = loaded else {
        return Ok(BuiltAgents {
            agents: rust_agents.clone(),
            tools: ServerTools(ToolRegistry::new()),
            warnings: Vec::new(),
        });
    };
    let rust_names: Vec<&str> = rust_agents.keys().map(String::as_str).collect();
    config.check_agent_names(origin, &rust_names)?;
    let mut tools = build_tools(config, origin)?;
    for tool in &rust_models.tools {
        tools = tools.tool(tool.clone());
    }
    let mut builder = AgentBuilder {
        config,
        origin,
        models: AgentModels::new(config, origin, rust_models)?,
        tools: &tools,
        built: rust_agents.clone(),
        begun: Vec::new(),
    };
    let mut agents = NamedAgents::new();
    for name in config.agents.keys() {
        agents.insert(name.clone(), builder.build(name)?);
    }
    agents.extend(rust_agents.clone());
    let warnings = builder.models.into_warnings();
    Ok(BuiltAgents { agents, tools: ServerTools(tools), warnings })
}

/// Builds agents in the order in which they need each other.
struct AgentBuilder<'s> {
    config: &'s Config,
    origin: &'s Origin,
    models: AgentModels<'s>,
    tools: &'s ToolRegistry,
    /// Starts as the agents that were added in Rust.
    built: NamedAgents,
    /// Agents whose subagents are being built.
    begun: Vec<String>,
}

impl AgentBuilder<'_> {
    fn build(&mut self, name: &str) -> Result<Arc<dyn Agent>, ConfigError> {
        if let Some(agent) = self.built.get(name) {
            return Ok(agent.clone());
        }
        let origin = self.origin;
        let table = ["agents", name];
        let Some(AgentConfig { common, kind }) = self.config.agents.get(name) else {
            return Err(origin.error(&table, "there is no such agent"));
        };
        let description = common.description.clone();
        let agent: Arc<dyn Agent> = match kind {
            AgentKind::Echo => Arc::new(Echo),
            AgentKind::Script(options) => Arc::new(read_script(name, &options.script, origin)?),
            AgentKind::Llm(options) => {
                let agent = self.llm(name, options)?;
                Arc::new(description.into_iter().fold(agent, LlmAgent::description))
            }
            AgentKind::Remote(options) => {
                Arc::new(Remote::new(options.clone()).map_err(|error| origin.option_error(&table, &error))?)
            }
            AgentKind::Replay(folder, options) => Arc::new(
                Replay::open(&origin.resolve(&folder.dir), options.clone())
                    .map_err(|error| origin.error(&["agents", name, "dir"], &error.to_string()))?,
            ),
        };
        let agent = match &common.a2ui {
            None => agent,
            Some(switch) => {
                let a2ui = a2ui(switch, origin).map_err(|error| origin.option_error(&table, &error))?;
                Arc::new(A2uiAgent::new(agent, a2ui))
            }
        };
        self.built.insert(name.to_owned(), agent.clone());
        Ok(agent)
    }

    fn llm(&mut self, name: &str, config: &LlmConfig) -> Result<LlmAgent, ConfigError> {
        self.begun.push(name.to_owned());
        let origin = self.origin;
        let fault = |message: &str| origin.error(&["agents", name, "tools"], message);
        let (mut tools, mut subagents, mut updates_state) = (Vec::new(), Vec::new(), false);
        for tool in &config.options.tools {
            match tool.strip_prefix(AGENT_PREFIX) {
                Some(agent) => subagents.push(agent),
                None if tool == UPDATE_STATE => updates_state = true,
                None => tools.push(tool),
            }
        }
        let toolbox = self.tools.toolbox(&tools).map_err(|unknown| fault(&unknown.to_string()))?;
        let mut agent = LlmAgent::new(self.models.model(name, config)?).tools(toolbox).updates_state(updates_state);
        for model in self.models.fallbacks(name, config)? {
            agent = agent.fallback(model);
        }
        agent = with_options(agent, &config.options, origin)
            .map_err(|error| origin.option_error(&["agents", name], &error))?;
        if let Some(context) = self.models.context(name, config)? {
            agent = agent.context(context);
        }
        for subagent in subagents {
            if self.begun.iter().any(|begun| begun == subagent) {
                return Err(fault(&format!("agent `{subagent}` would give tasks to itself")));
            }
            if !self.built.contains_key(subagent) && !self.config.agents.contains_key(subagent) {
                return Err(fault(&format!("there is no agent `{subagent}`")));
            }
            let built = self.build(subagent)?;
            agent = agent.subagent(subagent.replace('.', "_"), self.description(subagent, &*built), built);
        }
        self.begun.pop();
        Ok(agent)
    }

    /// Returns the description of a subagent for a model.
    fn description(&self, name: &str, agent: &dyn Agent) -> String {
        let configured = self.config.agents.get(name).and_then(|agent| agent.common.description.clone());
        let own = || agent.capabilities().identity.and_then(|identity| identity.description);
        configured.or_else(own).unwrap_or_else(|| format!("Gives a task to the agent {name}."))
    }
}

fn a2ui(switch: &A2uiSwitch, origin: &Origin) -> Result<A2ui, InvalidOption> {
    const SCHEMA_FILE: &str = "a2ui.schema_file";
    let config = match switch {
        A2uiSwitch::OnOrOff(yes) => return Ok(A2ui::enabled(*yes)),
        A2uiSwitch::On(config) => config,
    };
    let mut a2ui = A2ui::enabled(true);
    a2ui = config.catalog.iter().fold(a2ui, A2ui::catalog);
    if let Some(path) = &config.schema_file {
        let text = read_file(SCHEMA_FILE, path, origin)?;
        let read = serde_json::from_str(&text).map_err(|error| format!("not JSON: {error}"));
        let built = read.and_then(|json| a2ui.schema(&json).map_err(str::to_owned));
        a2ui = built.map_err(|problem| {
            InvalidOption::new(SCHEMA_FILE, format!("the file {}: {problem}", origin.resolve(path).display()))
        })?;
    }
    Ok(config.attempts.into_iter().fold(a2ui, A2ui::attempts))
}

fn read_script(name: &str, path: &Path, origin: &Origin) -> Result<Script, ConfigError> {
    let resolved = origin.resolve(path);
    let text = if path == Path::new(DEMO_PATH) && !origin.mentions(&["agents", name]) {
        DEMO.to_owned()
    } else {
        std::fs::read_to_string(&resolved).map_err(|error| {
            origin.error(&["agents", name, "script"], &format!("{} cannot be read: {error}", resolved.display()))
        })?
    };
    Script::parse(&text).map_err(|error| ConfigError::at(&resolved, &text, error.span(), error.message()))
}

/// Gives an agent the options that name no tools and no other agents.
pub(super) fn with_options(
    mut agent: LlmAgent,
    options: &LlmOptions,
    origin: &Origin,
) -> Result<LlmAgent, InvalidOption> {
    agent = agent.models(&options.models);
    if let Some(text) = &options.system_prompt {
        agent = agent.system_prompt(text);
    }
    if let Some(path) = &options.system_prompt_file {
        agent = agent.system_prompt(read_file("system_prompt_file", path, origin)?);
    }
    if let Some(choice) = &options.tool_choice {
        agent = agent.tool_choice(choice.clone());
    }
    if let Some(schema) = &options.response_schema {
        agent = agent.response_schema(schema.clone()).map_err(setup_fault)?;
    }
    if let Some(path) = &options.response_schema_file {
        const OPTION: &str = "response_schema_file";
        let text = read_file(OPTION, path, origin)?;
        let schema = serde_json::from_str(&text).map_err(|error| format!("not a JSON object: {error}"));
        let built = schema.and_then(|schema| agent.response_schema(schema).map_err(|error| setup_fault(error).problem));
        agent = built.map_err(|problem| {
            InvalidOption::new(OPTION, format!("the file {}: {problem}", origin.resolve(path).display()))
        })?;
    }
    if let Some(steps) = options.max_steps {
        agent = agent.max_steps(steps);
    }
    if let Some(calls) = options.max_calls_per_turn {
        agent = agent.max_calls_per_turn(calls);
    }
    if let Some(calls) = options.parallel_tools {
        agent = agent.parallel_tools(calls);
    }
    if let Some(seconds) = options.tool_timeout_secs {
        agent = agent.tool_timeout(Duration::from_secs(seconds));
    }
    Ok(agent.unknown_outcome(options.unknown_outcome))
}

/// Builds the tools and MCP servers that a configuration names, beside the built-in tools.
pub(super) fn build_tools(config: &Config, origin: &Origin) -> Result<ToolRegistry, ConfigError> {
    let mut registry = ToolRegistry::new();
    for (name, options) in &config.tools {
        let table = ["tools", name];
        if builtin::tools().iter().any(|tool| tool.spec().name == *name) {
            return Err(origin.error(&table, "there is a built-in tool of this name"));
        }
        let tool = HttpTool::new(name, options.clone()).map_err(|error| origin.option_error(&table, &error))?;
        registry = registry.tool(tool);
    }
    for (name, options) in &config.mcp {
        let server = McpServer::new(name.as_str(), options.clone());
        let server = server.map_err(|error| origin.option_error(&["mcp", name], &error))?;
        registry = registry.mcp(Arc::new(server));
    }
    let lists_sandbox =
        |agent: &AgentConfig| agent.llm().is_some_and(|llm| llm.options.tools.iter().any(|tool| tool == SANDBOX));
    if let Some((name, _)) = config.agents.iter().find(|(_, agent)| lists_sandbox(agent)) {
        let sandbox = Sandbox::new(config.server.data_dir.join("workspaces"), config.sandbox.clone())
            .map_err(|error| origin.error(&["agents", name, "tools"], &error.to_string()))?;
        registry = registry.sandbox_group(SANDBOX, sandbox);
    }
    Ok(registry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::Sources;

    fn build(text: &str) -> Result<ToolRegistry, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.toml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources { file: Some(file), environment: vec![], flags: vec![] };
        let loaded = sources.load().map_err(|error| error.to_string());
        let built =
            loaded.and_then(|loaded| build_tools(&loaded.config, &loaded.origin).map_err(|error| error.to_string()));
        built.map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
    }

    const WEATHER: &str = "[tools.weather]\nkind = \"http\"\ndescription = \"d\"\nurl = \"https://h/{city}\"\n";
    const FILES: &str = "[mcp.files]\ncommand = [\"x\"]\n";

    #[test]
    fn tools_and_servers_are_built_without_starting_anything() {
        // PATH is in every environment.
        let text = format!(
            "{WEATHER}method = \"POST\"\nheaders = {{ X-App = \"agui\", Authorization = {{ env = \"PATH\", prefix = \"Bearer \" }} }}\n\
             approval = {{ unless = {{ city = \"^K\" }} }}\n\
             [mcp.files]\ncommand = [\"/does/not/exist\", \"a\"]\nenv = {{ A = \"b\" }}\nenv_from = [\"PATH\"]\n\
             approval_of = {{ write = \"always\" }}\ntools = [\"read\", \"write\"]\n\
             [mcp.remote]\nurl = \"https://mcp.example.com/mcp\"\nheaders = {{ Authorization = {{ env = \"PATH\" }} }}\n"
        );
        let registry = build(&text).unwrap();
        let toolbox = registry.toolbox(&["weather", "current_time", "mcp:files", "mcp:remote/x"]).unwrap();
        assert_eq!(toolbox.tools().len(), 2);
    }

    #[test]
    fn errors_name_the_line_and_the_option() {
        for (text, expected) in [
            (format!("{WEATHER}metod = \"GET\""), "my.toml:5:1: unknown key `metod`; did you mean `method`?"),
            (format!("{WEATHER}method = \"TRACE\""), "my.toml:5:10: unknown value `TRACE`"),
            (format!("{WEATHER}approval = \"sometimes\""), "my.toml:5:12: unknown value `sometimes`"),
            (
                format!("{WEATHER}approval = {{ unless = {{ city = \"(\" }} }}"),
                "my.toml:5:12: the pattern of `city` is not a regular expression",
            ),
            (
                format!("{WEATHER}headers = {{ A = {{ env = \"AGUI_NOT_THERE\" }} }}"),
                "my.toml:5:1: tools.weather.headers: the environment variable AGUI_NOT_THERE is not set",
            ),
            (format!("{WEATHER}headers = {{ A = 1 }}"), "my.toml:5:17: expected a text, or a table such as"),
            (
                format!("{WEATHER}headers = {{ \"a b\" = \"\" }}"),
                "my.toml:5:1: tools.weather.headers: \"a b\" is not a valid",
            ),
            (format!("{WEATHER}headers = {{ Host = \"x\" }}"), "my.toml:5:1: tools.weather.headers: `host` is set"),
            (format!("{WEATHER}timeout_secs = 0"), "my.toml:5:1: tools.weather.timeout_secs: at least 1"),
            (format!("{WEATHER}parameters = {{ type = \"array\" }}"), "my.toml:5:1: tools.weather.parameters: "),
            (
                WEATHER.replace("//h", "//{h}"),
                "my.toml:4:1: tools.weather.url: the host is fixed: use places in the path",
            ),
            (WEATHER.replace("weather", "current_time"), "my.toml:1:8: tools.current_time: there is a built-in tool"),
            (WEATHER.replace("weather", "\"a b\""), "my.toml:1:8: tools.a b: a tool's name has"),
            ("[mcp.files]\n".to_owned(), "my.toml:1:6: mcp.files: an MCP server needs `command`"),
            (format!("{FILES}url = \"http://h\""), "my.toml:3:1: mcp.files.url: there is a `command` already"),
            (format!("{FILES}headers = {{ A = \"b\" }}"), "my.toml:3:1: mcp.files.headers: only a `url`"),
            (
                format!("{FILES}env_from = [\"AGUI_NOT_THERE\"]"),
                "my.toml:3:1: mcp.files.env_from: the environment variable AGUI_NOT_THERE is not set",
            ),
            (format!("{FILES}approval_of = {{ write = {{ when = {{}} }} }}"), "my.toml:3:"),
            ("[mcp.a]\nurl = \"file:///x\"".to_owned(), "my.toml:2:1: mcp.a.url: expected a URL"),
            ("[mcp.a]\nurl = \"http://u:p@h/\"".to_owned(), "my.toml:2:1: mcp.a.url: expected a URL"),
            (
                "[mcp.a]\nurl = \"http://h/\"\nheaders = { Accept = \"x\" }".to_owned(),
                "my.toml:3:1: mcp.a.headers: `accept` is set by the protocol",
            ),
        ] {
            let error = build(&text).unwrap_err();
            assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
        }
    }
}
