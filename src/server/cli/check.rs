//! `agui-server check`: reports the faults of a configuration, the redirect addresses of its
//! logins, and with `--online` the tools of its MCP servers and the models that do not answer.

use std::{error::Error, time::Instant};

use futures::{StreamExt as _, future::join_all};

use super::{
    arguments::{CheckArguments, CommandOptions},
    output::{print_line, print_warning},
    printable::{excerpt, printable_line},
};
use crate::server::{
    configured::{
        ServerTools,
        agent_models::{HostedModel, hosted_models},
        store::open_store,
    },
    options::Loaded,
};
use agui_base::text::PARAGRAPH_CHARS;
use agui_llm::{Model, ModelRequest, ModelStep};
use agui_protocol::ContentPart;

const WHAT_TO_DO: &str = "a damaged value counts as absent. Restore a backup; or delete a thread, by DELETE /threads/ID of its \
    owner or agui-server erase --thread NUMBER, and by SQL a row whose thread or run does not exist";

/// Returns `false` if an MCP server cannot be connected to, or if a model does not answer.
pub(super) async fn check(
    CheckArguments { file, online, store, options }: CheckArguments,
) -> Result<bool, Box<dyn Error>> {
    let (loaded, warnings) =
        CommandOptions { config: options.config.or(file), ..options }.load()?;
    warnings.iter().for_each(|warning| print_warning(warning));
    let agents = loaded.config.agents.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    print_line(&format!(
        "the configuration is fine: agents {agents}, listening on {}",
        loaded.config.server.listen
    ));
    let is_whole = !store || check_store(&loaded).await?;
    let tools = ServerTools::build(&loaded.config, &loaded.origin)?;
    let advice = tools.redirect_advice(loaded.config.server.listen, online).await;
    advice.iter().for_each(|advice| print_line(&printable_line(advice)));
    if !online {
        return Ok(is_whole);
    }
    let (are_connected, answer) =
        (check_mcp_servers(&loaded, &tools).await, check_models(&loaded).await?);
    Ok(is_whole && are_connected && answer)
}

async fn check_store(loaded: &Loaded) -> Result<bool, Box<dyn Error>> {
    let (store, name) = open_store(&loaded.config).await?;
    let damaged = store.damaged_rows().await?;
    damaged.iter().for_each(|row| print_line(&printable_line(row)));
    print_line(&match damaged.len() {
        0 => format!("the store {name} is fine"),
        count => format!("{count} damaged rows in {name}: {WHAT_TO_DO}"),
    });
    Ok(damaged.is_empty())
}

async fn check_mcp_servers(loaded: &Loaded, tools: &ServerTools) -> bool {
    let probed =
        join_all(tools.mcp.values().map(async |server| (server.name(), server.probe().await)))
            .await;
    for (name, found) in &probed {
        let found = match found {
            Ok(found) => found,
            Err(reason) => &format!("not connected: {reason}"),
        };
        print_line(&printable_line(&format!("mcp:{name}: {found}")));
    }
    for (agent, llm) in
        loaded.config.agents.iter().filter_map(|(name, agent)| Some((name, agent.llm()?)))
    {
        tools
            .hidden_tools(&llm.options.tools)
            .iter()
            .for_each(|hidden| print_warning(&format!("agents.{agent}: {hidden}")));
    }
    tools.stop().await;
    probed.iter().all(|(_, found)| found.is_ok())
}

async fn check_models(loaded: &Loaded) -> Result<bool, Box<dyn Error>> {
    let asked =
        hosted_models(loaded)?.into_iter().map(async |HostedModel { agent, name, model }| {
            let (begun, answer) = (Instant::now(), ask(&*model, name).await);
            let (does, problem) = match &answer {
                Ok(()) => ("answers", String::new()),
                Err(problem) => {
                    ("does not answer", format!(": {}", excerpt(problem, PARAGRAPH_CHARS)))
                }
            };
            let seconds = begun.elapsed().as_secs_f64();
            (answer.is_ok(), format!("agent:{agent}: {name} {does} ({seconds:.1} s){problem}"))
        });
    let asked = join_all(asked).await;
    asked.iter().for_each(|(_, found)| print_line(&printable_line(found)));
    Ok(asked.iter().all(|(answers, _)| *answers))
}

/// Sends the agent's own request with a short message, and ends it with the first piece of the answer. A list of models, where
/// a provider has one, would not show that this key may use the model with these options, and that its account pays.
async fn ask(model: &dyn Model, name: &str) -> Result<(), String> {
    let steps = vec![ModelStep::User(vec![ContentPart::text("Reply with OK.")])];
    let request = ModelRequest { model: Some(name.to_owned()), steps, ..ModelRequest::default() };
    match model.stream(request).next().await {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(format!("{error:?}")),
        None => Err("the answer is empty".to_owned()),
    }
}
