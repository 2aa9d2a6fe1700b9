//! The agents as models.

use agui_server::{
    agent::builtin::Echo,
    auth::ApiKey,
    options::{AllowRule, HttpOptions},
};

use super::*;

async fn get(server: &Running, path: &str, key: &str) -> (u16, Value) {
    let response = server.client.get(server.url(path)).bearer_auth(key).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

#[tokio::test]
async fn the_models_are_the_agents_that_the_caller_may_use() {
    let mut rule = AllowRule::default();
    rule.agents = vec!["secret".to_owned()];
    rule.principals = vec!["key:ann".to_owned()];
    let options = HttpOptions { allow: vec![rule], ..HttpOptions::default() };
    let keys = [ApiKey::from_secret("ann", "of-ann"), ApiKey::from_secret("bob", "of-bob")];
    let agents = Server::new().agent("open", Echo).agent("secret", Echo);
    let server = Running::start(agents.api_keys(keys).http_options(options)).await;
    let ids = async |key: &str| {
        let (status, list) = get(&server, "/v1/models", key).await;
        assert_eq!((status, &list["object"]), (200, &json!("list")));
        let ids = list["data"].as_array().unwrap().iter();
        ids.map(|model| model["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("of-ann").await, ["open", "secret"]);
    assert_eq!(ids("of-bob").await, ["open"]);
    let (status, model) = get(&server, "/v1/models/secret", "of-ann").await;
    assert_eq!((status, &model["id"], &model["object"]), (200, &json!("secret"), &json!("model")));
    let (status, refused) = get(&server, "/v1/models/secret", "of-bob").await;
    assert_eq!((status, &refused["error"]["type"]), (403, &json!("permission_error")));
    let (status, unknown) = get(&server, "/v1/models/other", "of-bob").await;
    assert_eq!((status, &unknown["error"]["code"]), (404, &json!("unknown_agent")));

    let ask = async |model: &str| {
        let body = asking("Hi", json!({ "model": model }));
        let response = server.post(PATH).bearer_auth("of-bob").json(&body).send().await.unwrap();
        response.status().as_u16()
    };
    assert_eq!([ask("open").await, ask("secret").await, ask("other").await], [200, 403, 404]);
}

#[tokio::test]
async fn an_option_removes_the_routes() {
    let mut options = HttpOptions::default();
    options.openai.enabled = false;
    let server = Running::start(Server::new().agent("echo", Echo).http_options(options)).await;
    let list = server.client.get(server.url("/v1/models")).send().await.unwrap();
    assert_eq!(list.status(), 404);
    assert_eq!(post(&server, &asking("Hi", json!({}))).await.status(), 404);
}
