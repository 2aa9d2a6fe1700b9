//! Keeps an MCP server connected: connects, lists its tools, waits for news, and begins again when it is lost.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{oneshot, watch},
    time::{Instant, sleep, timeout},
};

use super::{
    MAX_TOOLS, McpOptions,
    client::{Caller, Connection, Failure, News},
    tool::{Line, McpTool},
};

/// How long connecting and listing tools may take. Programs that download themselves first take their time.
const CONNECT: Duration = Duration::from_secs(60);
/// How long listing tools again may take.
const LIST: Duration = Duration::from_secs(30);
/// The pause before a server is started again, which doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// After this time the next death is the first again.
const LIVED: Duration = Duration::from_secs(60);
/// How soon a server may change its tools again.
const BREATH: Duration = Duration::from_millis(200);

/// The tools that a server has.
#[derive(Default)]
pub(super) struct Listed {
    /// Whether it was tried to connect.
    pub(super) settled: bool,
    /// Whether the server has ever said which tools it has.
    pub(super) known: bool,
    pub(super) tools: Vec<Arc<McpTool>>,
}

/// Keeps a server connected until it is told to stop, or dropped.
pub(super) async fn supervise(
    options: Arc<McpOptions>,
    line: Arc<Line>,
    listed: Arc<watch::Sender<Listed>>,
    mut stop: oneshot::Receiver<()>,
) {
    let server = options.name.as_str();
    let mut pauses = Pauses(FIRST_PAUSE);
    loop {
        let mut lived = Duration::ZERO;
        let opened = tokio::select! {
            opened = open(&options, &line, &listed) => opened,
            _ = &mut stop => return,
        };
        let why = match opened {
            Err(why) => why,
            Ok(mut connection) => {
                let since = Instant::now();
                line.set(Ok(connection.caller().clone()));
                settle(&listed);
                tracing::info!(server, tools = listed.borrow().tools.len(), "connected to the MCP server");
                let why = tokio::select! {
                    why = follow(&mut connection, &options, &line, &listed) => Some(why),
                    _ = &mut stop => None,
                };
                line.set(Err(why.clone().unwrap_or_else(|| "it is stopped".to_owned())));
                connection.close().await;
                let Some(why) = why else { return };
                lived = since.elapsed();
                why
            }
        };
        let pause = pauses.after(lived);
        tracing::warn!(server, why, again_in = ?pause, "the MCP server is not available");
        line.set(Err(why));
        settle(&listed);
        tokio::select! {
            () = sleep(pause) => {}
            _ = &mut stop => return,
        }
    }
}

/// How long to wait before the next start.
struct Pauses(Duration);

impl Pauses {
    fn after(&mut self, lived: Duration) -> Duration {
        if lived >= LIVED {
            self.0 = FIRST_PAUSE;
        }
        let now = self.0;
        self.0 = (now * 2).min(LONGEST_PAUSE);
        now
    }
}

async fn open(
    options: &Arc<McpOptions>,
    line: &Arc<Line>,
    listed: &watch::Sender<Listed>,
) -> Result<Connection, String> {
    let work = async {
        let connection = Connection::open(&options.name, &options.transport).await?;
        list(connection.caller(), options, line, listed).await.map_err(|failure| match failure {
            Failure::Refused(why) => format!("it does not list its tools: {why}"),
            Failure::Broken(error) => format!("it went away while it listed its tools: {error}"),
        })?;
        Ok(connection)
    };
    match timeout(CONNECT, work).await {
        Ok(result) => result,
        Err(_) => Err(format!("it does not answer within {} s", CONNECT.as_secs())),
    }
}

/// Follows a connection until it is lost.
async fn follow(
    connection: &mut Connection,
    options: &Arc<McpOptions>,
    line: &Arc<Line>,
    listed: &watch::Sender<Listed>,
) -> String {
    loop {
        match connection.news().await {
            News::Lost(why) => return why,
            News::ToolsChanged => {
                let caller = connection.caller().clone();
                match timeout(LIST, list(&caller, options, line, listed)).await {
                    Ok(Ok(())) => tracing::info!(
                        server = options.name,
                        tools = listed.borrow().tools.len(),
                        "the MCP server has other tools now"
                    ),
                    Ok(Err(Failure::Broken(error))) => return format!("the connection broke: {error}"),
                    Ok(Err(Failure::Refused(why))) => {
                        tracing::warn!(server = options.name, why, "the MCP server does not list its tools again");
                    }
                    Err(_) => caller.was_silent(),
                }
                sleep(BREATH).await;
            }
        }
    }
}

/// Asks for the tools. One that is as it was stays the same, and with it what others know about it.
async fn list(
    caller: &Caller,
    options: &Arc<McpOptions>,
    line: &Arc<Line>,
    listed: &watch::Sender<Listed>,
) -> Result<(), Failure> {
    let server = options.name.as_str();
    let told = caller.list(MAX_TOOLS).await?;
    if told.len() == MAX_TOOLS {
        tracing::warn!(server, "the MCP server has {MAX_TOOLS} tools or more; no more are used");
    }
    let allowed = |name: &str| options.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name));
    let mut tools = Vec::new();
    for told in &told {
        let name = told.get("name").and_then(|name| name.as_str()).unwrap_or_default();
        if !allowed(name) {
            continue;
        }
        match McpTool::read(told, options, line) {
            Ok(tool) => tools.push(Arc::new(tool)),
            Err(why) => tracing::warn!(server, tool = name, why, "a tool of the MCP server is left out"),
        }
    }
    let wanted = options.tools.iter().flatten().chain(options.approval_of.keys());
    for name in wanted.filter(|name| !told.iter().any(|tool| tool.get("name").is_some_and(|told| told == *name))) {
        tracing::warn!(server, tool = name, "the MCP server has no tool of this name");
    }
    listed.send_modify(|listed| {
        for tool in &mut tools {
            let same = |old: &&Arc<McpTool>| old.name == tool.name && old.spec == tool.spec;
            if let Some(old) = listed.tools.iter().find(same) {
                *tool = old.clone();
            }
        }
        listed.tools = tools;
        listed.known = true;
    });
    Ok(())
}

fn settle(listed: &watch::Sender<Listed>) {
    listed.send_modify(|listed| listed.settled = true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_and_begin_anew_after_a_life() {
        let mut pauses = Pauses(FIRST_PAUSE);
        let seconds: Vec<_> = (0..8).map(|_| pauses.after(Duration::from_secs(1)).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pauses.after(LIVED), FIRST_PAUSE);
        assert_eq!(pauses.after(Duration::ZERO), FIRST_PAUSE * 2);
    }
}
