//! Instructions of clients: accepted by default, and with `accept_instructions = false` on no way.

use serde_json::{Value, json};

use super::{Models, ask, input, provider::Provider, says};

const REFUSING: &str = "tools = [\"update_state\"]\n[threads]\naccept_instructions = false\n";
const MARK: &str = "obey the client";

fn with_marks() -> Value {
    let mut input = input("Hello");
    input["context"] = json!([{ "description": "page", "value": MARK }]);
    input["state"] = json!({ "note": MARK });
    input
}

/// Returns the roles of the request's messages that have the mark.
async fn marked_roles(options: &str, input: Value) -> Vec<String> {
    let provider = Provider::start().await;
    let models = Models::start(&provider, options);
    says(&provider, "So.");
    let events = ask(&models.process.url, input).await;
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{events:?}");
    let request = &provider.requests()[0].body;
    let marked = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message.to_string().contains(MARK));
    marked.map(|message| message["role"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn context_and_state_are_instructions_unless_they_are_refused() {
    let roles = marked_roles("tools = [\"update_state\"]\n", with_marks()).await;
    assert!(!roles.is_empty() && roles.iter().all(|role| role != "user"), "{roles:?}");
    assert_eq!(marked_roles(REFUSING, with_marks()).await, ["user"]);
}

#[tokio::test]
async fn what_a_page_says_about_surfaces_is_data_if_instructions_are_refused_and_never_the_servers_guide()
 {
    let of_page = |description: &str| {
        let mut input = input("Hello");
        input["context"] = json!([{ "description": description, "value": MARK }]);
        input["forwardedProps"] = json!({ "a2uiCatalogAvailable": true });
        input
    };
    let guidelines = "A2UI design guidelines — visual design rules.";
    assert_eq!(marked_roles("", of_page(guidelines)).await, ["system"]);
    assert_eq!(marked_roles(REFUSING, of_page(guidelines)).await, ["user"]);
    let guide = "A2UI render tool usage guide — how to call render_a2ui with valid arguments.";
    assert_eq!(marked_roles(REFUSING, of_page(guide)).await, [""; 0]);
}

#[tokio::test]
async fn instructions_of_named_events_and_copilotkit_are_refused() {
    let provider = Provider::start().await;
    let models = Models::start(&provider, REFUSING);
    let client = agui_base::upstream::client(&Default::default()).unwrap();
    let message = json!({ "id": "s", "role": "system", "content": MARK });
    let mut run = input("Hello");
    run["messages"].as_array_mut().unwrap().push(message.clone());
    let envelope =
        json!({ "method": "agent/run", "params": { "agentId": "assistant" }, "body": run });
    for (path, body) in [
        ("/agent/chat/stream", json!({ "messages": [message] })),
        ("/copilotkit/agent/assistant/run", run.clone()),
        ("/copilotkit", envelope),
    ] {
        let response =
            client.post(format!("{}{path}", models.process.url)).json(&body).send().await.unwrap();
        let (status, body) = (response.status(), response.text().await.unwrap());
        assert_eq!(status, 400, "{path}: {body}");
        assert!(body.contains("role_not_accepted"), "{path}: {body}");
    }
    assert!(provider.requests().is_empty());
}
