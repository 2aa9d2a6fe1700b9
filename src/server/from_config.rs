//! Servers that a configuration describes.

use std::sync::Arc;

use super::{
    Server, ServerError,
    configured::{
        Configured,
        callers::pass_headers,
        options::{agent_paths, build_auth, thread_options, without_subagents},
        store::open_store,
        transcription::build_transcription,
    },
};
use crate::{
    http::{Connections, HttpOptions},
    server::options::{ConfigError, Loaded},
};
use agui_llm::Model;
use agui_tools::Tool;

/// Servers that a configuration describes.
impl Server {
    /// The server that a configuration describes, with its store.
    ///
    /// # Errors
    /// A key cannot be read, or the store cannot be opened.
    pub async fn open(loaded: &Loaded) -> Result<Self, ServerError> {
        let (store, store_name) = open_store(&loaded.config).await?;
        Ok(Self { store, store_name, ..Self::from_config(loaded)? })
    }

    /// The server that a text in TOML describes, with threads in memory instead of its store.
    ///
    /// The configuration may name agents, tools and models that are added in Rust:
    ///
    /// ```
    /// use agui_server::prelude::*;
    ///
    /// const CONFIG: &str = r#"
    /// default_agent = "clerk"
    ///
    /// [agents.desk]
    /// kind = "llm"
    /// provider = "rust"                        # Server::model
    /// model = "house"
    /// tools = ["find_order", "agent:clerk"]    # Server::tool, Server::agent
    /// "#;
    /// # use agui_server::{agent::builtin::Echo, llm::{Model, ModelRequest, ModelStream}};
    /// # async fn clerk(_: RunAgentInput, out: Emitter) -> Result<(), AgentError> { out.text("Hello!").await }
    /// # struct House;
    /// # impl Model for House {
    /// #     fn provider(&self) -> &str { "house" }
    /// #     fn name(&self) -> &str { "house-1" }
    /// #     fn stream(&self, _: ModelRequest) -> ModelStream { Box::pin(futures::stream::empty()) }
    /// # }
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct OrderQuery { order: u32 }
    /// # let find_order = tool_fn("find_order", "Finds an order.", |query: OrderQuery, _| async move {
    /// #     format!("Order {} was sent.", query.order)
    /// # });
    /// let server = Server::from_toml_str(CONFIG)?
    ///     .agent("clerk", agent_fn(clerk))
    ///     .model("house", House)
    ///     .tool(find_order);
    /// server.check()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Relative paths start in the working directory. Environment variables are read with [`Sources`](crate::server::options::Sources)
    /// only.
    ///
    /// # Errors
    /// The faults of the configuration, with line, column and key, or a key that cannot be read.
    pub fn from_toml_str(text: &str) -> Result<Self, ConfigError> {
        Self::from_config(&Loaded::from_toml_str(text)?)
    }

    /// The server that a configuration describes, with threads in memory instead of its store.
    ///
    /// # Errors
    /// A key cannot be read.
    pub fn from_config(loaded: &Loaded) -> Result<Self, ConfigError> {
        let Loaded { config, origin } = loaded;
        let server = &config.server;
        Ok(Self {
            configured: Configured { loaded: Some(loaded.clone()), ..Configured::default() },
            principal_limits: config.limits,
            threads: thread_options(config),
            auth: build_auth(config, origin)?,
            http: HttpOptions {
                pass_headers: pass_headers(config),
                without_subagents: without_subagents(config),
                ..config.http_options()
            },
            paths: agent_paths(config),
            transcription: build_transcription(config, origin)?,
            playground: config.playground.clone(),
            prices: config.prices.clone(),
            connections: Connections {
                max: server.max_connections,
                head_timeout: server.head_timeout,
                stall_timeout: server.stall_timeout,
            },
            metrics: config.metrics.clone(),
            record: config.record.clone(),
            telemetry: config.telemetry.clone(),
            drain: server.drain,
            ..Self::new()
        })
    }

    /// Adds a tool that configured agents can list in `tools`, in place of another of that name.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.configured.tools.push(Arc::new(tool));
        self
    }

    /// Adds a model that configured agents can name: `provider = "rust"` and `model = "NAME"`.
    pub fn model(mut self, name: &str, model: impl Model) -> Self {
        self.configured.models.insert(name.to_owned(), Arc::new(model));
        self
    }

    /// Builds all agents and tools, and throws them away. `agui-server check` does this. Returns
    /// advice about options that providers will refuse.
    ///
    /// # Errors
    /// The first fault of the configuration, with its file, line and key.
    pub fn check(&self) -> Result<Vec<String>, ConfigError> {
        Ok(self.configured.build(&self.agents)?.warnings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::options::Sources;

    #[tokio::test]
    async fn an_empty_configuration_describes_a_new_server() {
        let loaded = Sources::default().load().unwrap();
        let (configured, new) = (Server::from_config(&loaded).unwrap(), Server::new());
        let options = |server: &Server| {
            let options: &[&dyn std::fmt::Debug] = &[
                &server.principal_limits,
                &server.threads,
                &server.http,
                &server.playground,
                &server.prices,
                &server.connections,
                &server.metrics,
                &server.record,
                &server.telemetry,
                &server.drain,
            ];
            format!("{options:?}")
        };
        assert_eq!(options(&configured), options(&new));
    }
}
