//! The tools of a server, by the names in an agent's list of tools:
//!
//! - `get_weather`: a tool of the configuration, or a [built-in](builtin) one.
//! - `sandbox`: a group of tools.
//! - `mcp:files`: all tools of an MCP server.
//! - `mcp:files/read_file`: one tool of an MCP server, by the name that the server gives it.
//! - `mcp:files/resources`, `mcp:files/prompts`: tools that list and read the server's resources or prompts. A tool of
//!   one of these names can only be had with all others of its server.

use std::{net::SocketAddr, sync::Arc};

use futures::future::join_all;
use indexmap::IndexMap;

use super::sandbox_workspaces::{SandboxWorkspaces, log_sandbox};
use crate::{
    http::{
        RouteSet, accounts,
        state::{Dependencies, Dependency},
    },
    server::options::{AgentConfig, Config, ConfigError, Origin, SANDBOX},
};
use agui_base::{InvalidOption, text::nearest, upstream::secret_names::secret_variable};
use agui_mcp::McpServer;
use agui_run::host::ThreadData;
use agui_sandbox::Sandbox;
use agui_store::Store;
use agui_tools::{
    Tool, Toolbox, builtin,
    http::{HttpTool, HttpToolOptions},
    login::{LoginPlace, LoginService, PersonLogin},
};

/// The prefix of an agent's name in a list of tools.
pub(super) const AGENT_PREFIX: &str = "agent:";
/// The tool by which a model changes the shared state.
pub(super) const UPDATE_STATE: &str = "update_state";
const RESOURCES: &str = "resources";
const PROMPTS: &str = "prompts";

/// The tools of a server.
#[derive(Clone, Default)]
pub(in crate::server) struct ServerTools {
    tools: IndexMap<String, Arc<dyn Tool>>,
    pub(in crate::server) mcp: IndexMap<String, Arc<McpServer>>,
    /// Set if people log in at an MCP server or a web service.
    logins: Option<Arc<LoginService>>,
    /// The URL of this server for browsers, if it is configured.
    public_url: Option<String>,
    /// Set if an agent lists it.
    sandbox: Option<Arc<Sandbox>>,
}

impl ServerTools {
    /// Builds the tools and MCP servers that a configuration names, beside the built-in tools. Starts no process and makes
    /// no request.
    pub(in crate::server) fn build(config: &Config, origin: &Origin) -> Result<Self, ConfigError> {
        let mut all = Self::default();
        builtin::tools().into_iter().for_each(|tool| all.add(tool));
        let mut errors = Vec::new();
        all.logins = build_logins(config, origin)?;
        for (name, options) in &config.tools {
            let table = ["tools", name];
            match all.http_tool(name, options) {
                _ if all.tools.contains_key(name) => {
                    errors.push(origin.error(&table, "there is a built-in tool of this name"));
                }
                Ok(tool) => all.add(Arc::new(tool)),
                Err(error) => errors.push(origin.option_error(&table, &error)),
            }
        }
        all.public_url = config.server.public_url.clone();
        for (name, options) in &config.mcp {
            let server = match &all.logins {
                Some(logins) if options.login.is_some() => {
                    McpServer::with_logins(name.as_str().into(), options.clone(), logins.clone())
                }
                _ => McpServer::new(name.as_str(), options.clone()),
            };
            match server {
                Ok(server) => drop(all.mcp.insert(name.clone(), Arc::new(server))),
                Err(error) => errors.push(origin.option_error(&["mcp", name], &error)),
            }
        }
        ConfigError::join(errors.into_iter())?;
        let lists_sandbox = |agent: &AgentConfig| {
            agent.llm().is_some_and(|llm| llm.options.tools.iter().any(|tool| tool == SANDBOX))
        };
        if let Some((name, _)) = config.agents.iter().find(|(_, agent)| lists_sandbox(agent)) {
            let sandbox =
                Sandbox::new(config.server.data_dir.join("workspaces"), config.sandbox.clone())
                    .map_err(|error| {
                        origin.error(&["agents", name, "tools"], &error.to_string())
                    })?;
            all.sandbox = Some(sandbox);
        }
        Ok(all)
    }

    fn http_tool(&self, name: &str, options: &HttpToolOptions) -> Result<HttpTool, InvalidOption> {
        let account = options.login_server()?.map(|(account, _)| account);
        let login = self
            .logins
            .clone()
            .zip(account)
            .map(|(logins, account)| PersonLogin::new(logins, account.into()));
        HttpTool::build(name.to_owned(), options.clone(), login)
    }

    /// Adds a tool under its name. It replaces a tool of the same name.
    pub(super) fn add(&mut self, tool: Arc<dyn Tool>) {
        self.tools.insert(tool.spec().name.clone(), tool);
    }

    /// Starts the MCP servers in the background. Needs a tokio runtime.
    pub(in crate::server) fn start(&self) {
        self.mcp.values().for_each(|server| server.start());
    }

    /// Stops the MCP servers, and waits until their processes have ended.
    pub(in crate::server) async fn stop(&self) {
        join_all(self.mcp.values().map(|server| server.stop())).await;
    }

    /// Returns the MCP servers as dependencies.
    pub(in crate::server) fn dependencies(&self) -> Dependencies {
        let servers: Vec<_> = self.mcp.values().cloned().collect();
        Arc::new(move || {
            let dependency = |server: &Arc<McpServer>| Dependency {
                name: format!("mcp:{}", server.name()),
                is_available: server.is_available(),
                is_required: server.is_required(),
            };
            servers.iter().map(dependency).collect()
        })
    }

    /// Lets people log in at other servers. Returns the routes for it.
    pub(in crate::server) fn login_routes(
        &self,
        store: &Arc<dyn Store>,
        address: Option<SocketAddr>,
    ) -> Vec<RouteSet> {
        let Some(logins) = &self.logins else { return Vec::new() };
        logins.set_place(LoginPlace { store: store.clone(), base_url: self.base_url(address) });
        accounts::route_sets(logins.clone())
    }

    fn base_url(&self, address: Option<SocketAddr>) -> String {
        let listened = address.map(|address| format!("http://{address}"));
        self.public_url.clone().or(listened).unwrap_or_default().trim_end_matches('/').to_owned()
    }

    /// Returns advice about the redirect addresses of logins with a configured client.
    pub(in crate::server) async fn redirect_advice(
        &self,
        listen: SocketAddr,
        is_online: bool,
    ) -> Vec<String> {
        match &self.logins {
            Some(logins) => logins.redirect_advice(&self.base_url(Some(listen)), is_online).await,
            None => Vec::new(),
        }
    }

    /// Returns the data that is removed with threads.
    pub(in crate::server) fn thread_data(&self) -> Option<Arc<dyn ThreadData>> {
        let sandbox = self.sandbox.clone()?;
        log_sandbox(&sandbox);
        Some(Arc::new(SandboxWorkspaces(sandbox)))
    }

    /// Returns a toolbox with the tools that an agent lists. The error is about the first unknown name.
    pub(super) fn toolbox<S: AsRef<str>>(&self, names: &[S]) -> Result<Toolbox, String> {
        let mut toolbox = Toolbox::new();
        for name in names.iter().map(AsRef::as_ref) {
            toolbox = if let Some(path) = name.strip_prefix("mcp:") {
                let (server, tool) = path
                    .split_once('/')
                    .map_or((path, None), |(server, tool)| (server, Some(tool)));
                let server =
                    self.mcp.get(server).ok_or_else(|| self.unknown("MCP server", name))?;
                match tool {
                    Some(RESOURCES) => toolbox.source(McpServer::resources(server)),
                    Some(PROMPTS) => toolbox.source(McpServer::prompts(server)),
                    Some(tool) => toolbox.source(McpServer::single_tool(server, tool)),
                    None => toolbox.source(server.clone()),
                }
            } else if let Some(sandbox) = self.sandbox.as_ref().filter(|_| name == SANDBOX) {
                sandbox.tools().into_iter().fold(toolbox, Toolbox::shared_tool)
            } else {
                toolbox.shared_tool(
                    self.tools.get(name).ok_or_else(|| self.unknown("tool", name))?.clone(),
                )
            };
        }
        Ok(toolbox)
    }

    /// Returns advice about the tools of an agent that its model is not offered, because an earlier
    /// tool in the list has the same name. The tools of an MCP server are known only after it is
    /// connected.
    pub(in crate::server) fn hidden_tools(&self, listed: &[String]) -> Vec<String> {
        let tools =
            listed.iter().filter(|name| !name.starts_with(AGENT_PREFIX) && *name != UPDATE_STATE);
        let hidden = self.toolbox(&tools.collect::<Vec<_>>()).map(|toolbox| toolbox.hidden_tools());
        let advice = hidden.iter().flatten().map(|[first, hidden]| {
            let (name, owner) = (&hidden.spec().name, hidden.metric_name());
            let first = first.metric_name();
            format!("the tool {name} of {owner} is hidden by that of {first}: set the option `prefix` of one of the MCP servers")
        });
        advice.collect()
    }

    fn unknown(&self, kind: &str, name: &str) -> String {
        let known =
            self.tools.keys().cloned().chain(self.sandbox.iter().map(|_| SANDBOX.to_owned()));
        let known: Vec<_> =
            known.chain(self.mcp.keys().map(|server| format!("mcp:{server}"))).collect();
        // A name that lacks only the prefix is the best match.
        let prefixed =
            known.iter().find(|known| known.strip_prefix("mcp:") == Some(name)).map(String::as_str);
        let similar = prefixed
            .or_else(|| nearest(name, &known.iter().map(String::as_str).collect::<Vec<_>>()));
        let advice =
            similar.map(|similar| format!("; did you mean `{similar}`?")).unwrap_or_default();
        format!("there is no {kind} `{name}`{advice}")
    }
}

fn build_logins(
    config: &Config,
    origin: &Origin,
) -> Result<Option<Arc<LoginService>>, ConfigError> {
    let mut servers = IndexMap::new();
    for (name, options) in &config.mcp {
        let server =
            options.login_server().map_err(|error| origin.option_error(&["mcp", name], &error))?;
        servers.extend(server.map(|server| (name.clone(), server)));
    }
    let mut tools: IndexMap<String, (&String, &HttpToolOptions)> = IndexMap::new();
    for (name, options) in &config.tools {
        let server = options
            .login_server()
            .map_err(|error| origin.option_error(&["tools", name], &error))?;
        let Some((account, server)) = server else { continue };
        let problem = match tools.get(&account) {
            Some((_, other)) if other.login_options() == options.login_options() => continue,
            Some((other, _)) => {
                format!(
                    "the tool `{other}` of {account} has another login: tools of one host share it"
                )
            }
            None if servers.contains_key(&account) => {
                format!("people log in at an MCP server `{account}`: rename that")
            }
            None => {
                tools.insert(account.clone(), (name, options));
                servers.insert(account, server);
                continue;
            }
        };
        return Err(origin.error(&["tools", name, "login"], &problem));
    }
    if servers.is_empty() {
        return Ok(None);
    }
    let key = secret_variable(config.secrets.key_env.as_deref().unwrap_or_default());
    let key = key.map_err(|problem| InvalidOption::new("key_env", problem));
    let logins = key.and_then(|key| LoginService::new(&key, servers));
    logins
        .map(|logins| Some(Arc::new(logins)))
        .map_err(|error| origin.option_error(&["secrets"], &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::Sources;

    fn build(text: &str) -> Result<ServerTools, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.toml");
        std::fs::write(&file, text).unwrap();
        let sources = Sources { file: Some(file), environment: vec![], flags: vec![] };
        let loaded = sources.load().map_err(|error| error.to_string());
        let built = loaded.and_then(|loaded| {
            ServerTools::build(&loaded.config, &loaded.origin).map_err(|error| error.to_string())
        });
        built.map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
    }

    const WEATHER: &str =
        "[tools.weather]\nkind = \"http\"\ndescription = \"d\"\nurl = \"https://h/{city}\"\n";
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
        let tools = build(&text).unwrap();
        let toolbox =
            tools.toolbox(&["weather", "current_time", "mcp:files", "mcp:remote/x"]).unwrap();
        assert_eq!(toolbox.tools().len(), 2);
    }

    #[test]
    fn errors_name_the_line_and_the_option() {
        for (text, expected) in [
            (
                format!("{WEATHER}metod = \"GET\""),
                "my.toml:5:1: unknown key `metod`; did you mean `method`?",
            ),
            (format!("{WEATHER}method = \"TRACE\""), "my.toml:5:10: unknown value `TRACE`"),
            (
                format!("{WEATHER}approval = \"sometimes\""),
                "my.toml:5:12: unknown value `sometimes`",
            ),
            (
                format!("{WEATHER}approval = {{ unless = {{ city = \"(\" }} }}"),
                "my.toml:5:12: the pattern of `city` is not a regular expression",
            ),
            (
                format!("{WEATHER}headers = {{ A = {{ env = \"AGUI_NOT_THERE\" }} }}"),
                "my.toml:5:1: tools.weather.headers: the environment variable AGUI_NOT_THERE is not set",
            ),
            (
                format!("{WEATHER}headers = {{ A = 1 }}"),
                "my.toml:5:17: expected a text, or a table such as",
            ),
            (
                format!("{WEATHER}headers = {{ \"a b\" = \"\" }}"),
                "my.toml:5:1: tools.weather.headers: \"a b\" is not a valid",
            ),
            (
                format!("{WEATHER}headers = {{ Host = \"x\" }}"),
                "my.toml:5:1: tools.weather.headers: `host` is set",
            ),
            (
                format!("{WEATHER}timeout_secs = 0"),
                "my.toml:5:1: tools.weather.timeout_secs: at least 1",
            ),
            (
                format!("{WEATHER}parameters = {{ type = \"array\" }}"),
                "my.toml:5:1: tools.weather.parameters: ",
            ),
            (
                WEATHER.replace("//h", "//{h}"),
                "my.toml:4:1: tools.weather.url: the host is fixed: use places in the path",
            ),
            (
                WEATHER.replace("weather", "current_time"),
                "my.toml:1:8: tools.current_time: there is a built-in tool",
            ),
            (WEATHER.replace("weather", "\"a b\""), "my.toml:1:8: tools.a b: a tool's name has"),
            ("[mcp.files]\n".to_owned(), "my.toml:1:6: mcp.files: an MCP server needs `command`"),
            (
                format!("{FILES}url = \"http://h\""),
                "my.toml:3:1: mcp.files.url: there is a `command` already",
            ),
            (
                format!("{FILES}headers = {{ A = \"b\" }}"),
                "my.toml:3:1: mcp.files.headers: only a `url`",
            ),
            (
                format!("{FILES}env_from = [\"AGUI_NOT_THERE\"]"),
                "my.toml:3:1: mcp.files.env_from: the environment variable AGUI_NOT_THERE is not set",
            ),
            (format!("{FILES}approval_of = {{ write = {{ when = {{}} }} }}"), "my.toml:3:"),
            ("[mcp.a]\nurl = \"file:///x\"".to_owned(), "my.toml:2:1: mcp.a.url: expected a URL"),
            (
                "[mcp.a]\nurl = \"http://u:p@h/\"".to_owned(),
                "my.toml:2:1: mcp.a.url: expected a URL",
            ),
            (
                "[mcp.a]\nurl = \"http://h/\"\nheaders = { Accept = \"x\" }".to_owned(),
                "my.toml:3:1: mcp.a.headers: `accept` is set by the protocol",
            ),
        ] {
            let error = build(&text).err().unwrap();
            assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
        }
    }

    #[test]
    fn tools_of_one_host_share_a_login_and_no_other_has_its_name() {
        let login = "login = \"person\"\nlogin_authorization_url = \"https://id/a\"\n\
                     login_token_url = \"https://id/t\"\nlogin_client_id = \"agui\"\n";
        let secrets = "[secrets]\nkey_env = \"PATH\"\n";
        let (one, two) =
            (format!("{WEATHER}{login}"), format!("{WEATHER}{login}").replace("weather", "rain"));
        let tools = build(&format!("{secrets}{one}{two}")).unwrap();
        assert!(tools.toolbox(&["weather", "rain"]).is_ok());
        let other = two.replace("agui", "other");
        let error = build(&format!("{secrets}{one}{other}")).err().unwrap();
        assert!(
            error.contains("tools.rain.login: the tool `weather` of h has another login"),
            "{error}"
        );
        build(&format!("{secrets}{one}{}", other.replace("//h", "//h:8443"))).unwrap();
        let server = "[mcp.h]\nurl = \"https://mcp/\"\nlogin = \"person\"\n";
        let error = build(&format!("{secrets}{one}{server}")).err().unwrap();
        assert!(
            error.contains("tools.weather.login: people log in at an MCP server `h`"),
            "{error}"
        );
    }

    #[test]
    fn all_tools_and_servers_with_an_error_are_named() {
        let header = "headers = { A = { env = \"AGUI_NOT_THERE\" } }\n";
        let error = build(&format!("{WEATHER}{header}[mcp.a]\nurl = \"http://h\"\n{header}"))
            .err()
            .unwrap();
        assert_eq!(error.matches("AGUI_NOT_THERE is not set").count(), 2, "{error}");
    }

    #[test]
    fn tools_are_found_by_name_and_unknown_names_get_a_suggestion() {
        let tools = build(FILES).unwrap();
        let names =
            tools.toolbox(&["current_time", "mcp:files", "mcp:files/read"]).unwrap().tools();
        assert_eq!(names.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["current_time"]);
        assert!(tools.toolbox::<&str>(&[]).unwrap().is_empty());
        let wrong = |name: &str| tools.toolbox(&[name]).unwrap_err();
        assert_eq!(
            wrong("current_tyme"),
            "there is no tool `current_tyme`; did you mean `current_time`?"
        );
        assert_eq!(
            wrong("mcp:flies"),
            "there is no MCP server `mcp:flies`; did you mean `mcp:files`?"
        );
        assert_eq!(wrong("files"), "there is no tool `files`; did you mean `mcp:files`?");
        assert_eq!(wrong("zzz"), "there is no tool `zzz`");
    }
}
