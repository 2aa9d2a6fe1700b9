//! Requests of the Messages API (<https://platform.claude.com/docs/en/api/messages/create>).

use serde_json::{Value, json};

use super::{
    content_blocks::text,
    messages::{ClaudeMessages, CurrentPlace, thinking_block},
    schema::GrammarLimits,
    thinking::{Conditions, RequestThinking, ThinkingPlan},
};
use crate::{
    Block, ModelOptions, ModelRequest, ModelStep, ToolChoice,
    form::SystemForm,
    known_models::{ClaudeRules, MessagesServer},
    providers::wire::{
        SetMember as _, calls, forced_call_in_words, leading_instructions, schema, schema_in_words,
    },
    transport::ProviderRequest,
};
use agui_protocol::JsonObject;

const FILES_BETA: &str = "files-api-2025-04-14";
/// The beta feature that lets a request set the handling of thinking blocks after changed
/// instructions, tools or messages.
pub(super) const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

#[derive(Debug)]
pub(crate) struct ClaudeRequestBody {
    pub(crate) sent: ProviderRequest,
    /// The beta features that the request needs.
    pub(super) betas: Vec<&'static str>,
    /// True if the request offers tools that run at the provider.
    pub(super) has_server_tools: bool,
}

/// Returns the body. `is_official` is true if the server has the newest features of Anthropic's own
/// one, such as [`BINDING_BETA`].
pub(crate) fn body(
    options: &ModelOptions,
    request: &ModelRequest,
    server: &MessagesServer,
    is_official: bool,
) -> ClaudeRequestBody {
    let server = &*request.form.messages_server(server);
    let form = &request.form;
    let model = request.model.as_ref().unwrap_or(&options.model);
    let rules = options.known_models.anthropic(model);
    let rules = rules.as_ref();
    let choice = CallChoice::new(options, request, rules);
    let conditions = Conditions {
        switch: request.thinking,
        refuses_budget: choice.is_forced
            || lacks_thinking(&request.steps, server, form.has_reasoning()),
    };
    let plan = ThinkingPlan::new(options, rules, conditions);
    let mut limits = GrammarLimits::default();
    let format = request.response_schema.as_deref();
    let grammar = format
        .filter(|_| is_structured(rules) && form.has("output_config"))
        .and_then(|schema| limits.grammar(&schema.clone().into()));

    let described = format.filter(|_| grammar.is_none()).map(schema_in_words);
    let (leading, steps) = leading_instructions(&request.steps);
    let system =
        request.system.iter().map(String::as_str).chain(leading).chain(described.as_deref());
    let mut system: Vec<_> = system.filter(|text| !text.trim().is_empty()).map(text).collect();
    let mut tools = tools(options, request, rules, &mut limits);
    // The API caches the request up to a mark. Tools, instructions and the conversation stay the same in the next
    // request. The current context and state may change, so they come after all marks.
    if let Some(stable) =
        system.last_mut().or(tools.last_mut()).filter(|_| form.has("cache_control"))
    {
        stable["cache_control"] = json!({"type": "ephemeral"});
    }
    let sends = SentThinking { server, is_official };
    let messages = messages(steps, request, rules, &plan, &choice, sends);
    let mut betas: Vec<_> = messages.has_files().then_some(FILES_BETA).into_iter().collect();
    let (messages, skipped) = messages.into_json();

    let mut body = JsonObject::new();
    body.set("model", model.as_str());
    body.set("max_tokens", plan.max_tokens);
    body.set("stream", true);
    body.set("messages", messages);
    body.set("system", system);
    body.set("tools", tools);
    body.set("tool_choice", choice.member);
    body.set("thinking", thinking_member(&plan, binds_thinking(rules) && is_official));
    let mut output = JsonObject::new();
    output.set("effort", plan.effort.as_deref());
    output.set("format", grammar.map(|schema| json!({"type": "json_schema", "schema": schema})));
    body.set("output_config", output);
    body.extend(plan.sampling(options, rules));
    // The API refuses blank stop texts.
    let stop = options.stop.iter().filter(|text| !text.trim().is_empty());
    body.set("stop_sequences", stop.cloned().collect::<Vec<_>>());
    body.set("service_tier", options.service_tier.as_deref());
    body.set("metadata", json!(options.metadata));
    form.drop_parameters(&mut body);
    options.extend(&mut body);
    if body.get("thinking").is_some_and(|thinking| thinking.get("block_binding").is_some()) {
        betas.push(BINDING_BETA);
    }
    let has_server_tools = has_server_tools(&body);
    let forbids_calls = body.get("tool_choice").is_some_and(|choice| choice["type"] == "none");
    if has_server_tools && request.tools.is_empty() && forbids_calls {
        body.remove("tool_choice");
    }
    let sent = ProviderRequest { json: body.into(), skipped, ..ProviderRequest::default() };
    ClaudeRequestBody { sent, betas, has_server_tools }
}

/// The conditions of sent thinking, beside the model.
struct SentThinking<'r> {
    server: &'r MessagesServer,
    is_official: bool,
}

/// Returns the conversation. The context, the state and the words that ask for a call come after
/// the marks for the cache.
fn messages<'r>(
    steps: &[ModelStep],
    request: &ModelRequest,
    rules: Option<&ClaudeRules>,
    plan: &ThinkingPlan,
    choice: &CallChoice,
    SentThinking { server, is_official }: SentThinking<'r>,
) -> ClaudeMessages<'r> {
    let current = request.current.iter().map(String::as_str).chain(choice.instruction.as_deref());
    let current: Vec<_> = current.filter(|text| !text.trim().is_empty()).collect();
    let binds = binds_thinking(rules);
    let mut messages = ClaudeMessages::new(
        steps,
        server,
        request.form.has_reasoning()
            && sends_thinking(plan, binds, is_official, current.is_empty()),
    );
    if request.form.has("cache_control") {
        messages.mark_for_cache();
    }
    if !current.is_empty() {
        let as_system = is_official
            && request.form.system == SystemForm::Usual
            && rules.is_some_and(|rules| rules.system_messages);
        messages.add_current(&current.join("\n\n"), CurrentPlace { as_system, behind_user: binds });
    }
    messages
}

/// Returns the member `thinking`. `has_binding`: the model binds thinking to its context, and the server can drop it then.
fn thinking_member(plan: &ThinkingPlan, has_binding: bool) -> Value {
    let mut member = plan.member();
    if has_binding && matches!(plan.thinking, RequestThinking::Adaptive { .. }) {
        // Otherwise the API may refuse the request after each change of context, state, instructions or tools
        // (https://platform.claude.com/docs/en/build-with-claude/preserved-thinking).
        member["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
    }
    member
}

fn binds_thinking(rules: Option<&ClaudeRules>) -> bool {
    rules.is_some_and(|rules| rules.binds_thinking)
}

fn is_structured(rules: Option<&ClaudeRules>) -> bool {
    rules.is_some_and(|rules| rules.structured)
}

/// Returns whether earlier thinking is sent. A server that cannot drop invalid thinking gets none:
/// the API allows leaving out all of it.
fn sends_thinking(
    plan: &ThinkingPlan,
    binds: bool,
    is_official: bool,
    is_append_only: bool,
) -> bool {
    match plan.thinking {
        _ if !binds => true,
        RequestThinking::Adaptive { .. } => is_official || is_append_only,
        _ => false,
    }
}

/// Returns whether a request with these members offers tools of the provider. They have a type. So
/// do toolsets of MCP servers, which are a member of their own.
pub(super) fn has_server_tools(members: &JsonObject) -> bool {
    let is_server_tool = |tool: &Value| tool.get("type").is_some_and(|kind| kind != "custom");
    members.contains_key("mcp_servers")
        || members
            .get("tools")
            .and_then(Value::as_array)
            .is_some_and(|tools| tools.iter().any(is_server_tool))
}

/// Returns whether calls since the last user's message have no thinking before them. With a budget,
/// the API does not think about such a request. One block of thinking is enough, because many
/// models do not think again after their first calls.
fn lacks_thinking(steps: &[ModelStep], server: &MessagesServer, has_reasoning: bool) -> bool {
    let since =
        steps.iter().rposition(|step| matches!(step, ModelStep::User(_))).map_or(0, |at| at + 1);
    let mut own_steps = steps[since..].iter().filter_map(|step| match step {
        ModelStep::Assistant(blocks) => Some(blocks),
        _ => None,
    });
    let begins_with_thinking = |blocks: &Vec<Block>| {
        let first = blocks.iter().find_map(|block| match block {
            Block::Reasoning(block) => thinking_block(block, server).map(|_| true),
            Block::Text(_) | Block::Call(_) => Some(false),
        });
        first == Some(true)
    };
    own_steps.clone().next().is_some() && !(has_reasoning && own_steps.any(begins_with_thinking))
}

/// The calls that the model may or has to make.
struct CallChoice {
    member: Option<Value>,
    is_forced: bool,
    /// Replaces a forced call for models that refuse to be forced.
    instruction: Option<String>,
}

impl CallChoice {
    fn new(options: &ModelOptions, request: &ModelRequest, rules: Option<&ClaudeRules>) -> Self {
        let offers = |name: &str| request.tools.iter().any(|tool| tool.name == name);
        let wanted = match &request.tool_choice {
            ToolChoice::None => json!({"type": "none"}),
            ToolChoice::Required => json!({"type": "any"}),
            ToolChoice::Tool(name) if offers(name) => json!({"type": "tool", "name": name}),
            ToolChoice::Tool(_) | ToolChoice::Auto => json!({"type": "auto"}),
        };
        let choice = |member, is_forced, instruction| Self { member, is_forced, instruction };
        if request.tools.is_empty() {
            // Called tools must be declared, so calls are forbidden by the choice.
            let has_calls = calls(&request.steps).next().is_some();
            return choice(has_calls.then(|| json!({"type": "none"})), false, None);
        }
        let is_forced = wanted["type"] == "any" || wanted["type"] == "tool";
        let can_force = rules.is_none_or(|rules| rules.forced_tools);
        let (mut member, instruction) = if is_forced && !can_force {
            (json!({"type": "auto"}), forced_call_in_words(&request.tool_choice))
        } else {
            (wanted, None)
        };
        if options.parallel_tool_calls == Some(false) && member["type"] != "none" {
            member["disable_parallel_tool_use"] = true.into();
        }
        let is_default = member == json!({"type": "auto"});
        choice((!is_default).then_some(member), is_forced && can_force, instruction)
    }
}

fn tools(
    options: &ModelOptions,
    request: &ModelRequest,
    rules: Option<&ClaudeRules>,
    limits: &mut GrammarLimits,
) -> Vec<Value> {
    let tool = |name: &str, description: &str, schema: Value| {
        let mut tool = JsonObject::new();
        tool.set("name", name);
        tool.set("description", Some(description).filter(|text| !text.is_empty()));
        tool.set("input_schema", schema);
        Value::from(tool)
    };
    if !request.tools.is_empty() {
        let is_strict = options.strict_tools == Some(true)
            && is_structured(rules)
            && request.form.has("strict");
        let tools = request.tools.iter().map(|spec| {
            let schema = schema(&spec.parameters);
            match is_strict.then(|| limits.strict_tool(&schema)).flatten() {
                Some(schema) => {
                    let mut tool = tool(&spec.name, &spec.description, schema);
                    tool["strict"] = true.into();
                    tool
                }
                None => tool(&spec.name, &spec.description, schema),
            }
        });
        return tools.collect();
    }
    // The API refuses a conversation with calls but without tools. So the called ones are declared, and `tool_choice`
    // forbids calls.
    let mut names: Vec<_> = calls(&request.steps).map(|call| call.function.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| tool(name, "", schema(&Value::Null))).collect()
}

#[cfg(test)]
mod tests;
