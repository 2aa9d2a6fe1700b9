//! Logins for tests of this crate and of the crates that use logins.

use std::sync::Arc;

use indexmap::IndexMap;

use agui_store::{Millis, Store, host::now, sealed::ExpectedValue};

use super::{
    ClientAuth, ClientCredentials, LoginPlace, LoginServer, LoginService, PersonLogin, TokenSource,
    tokens::StoredLogin,
};

/// Returns one of several servers with one store.
pub fn replica(store: &Arc<dyn Store>) -> PersonLogin {
    let server =
        LoginServer::discovered("http://127.0.0.1:9/mcp", &[], None, None, vec![]).unwrap();
    let servers = IndexMap::from([("notes".to_owned(), server)]);
    let service = LoginService::new(&"k".repeat(32), servers).unwrap();
    service.set_place(LoginPlace { store: store.clone(), base_url: "http://localhost".to_owned() });
    PersonLogin::new(Arc::new(service), "notes".into())
}

/// The source of tokens that a stored login names.
pub fn token_source(token_endpoint: String) -> TokenSource {
    TokenSource {
        token_endpoint,
        revocation_endpoint: None,
        client: ClientCredentials { id: "agui".to_owned(), secret: None, auth: ClientAuth::Basic },
        resource: Some("http://127.0.0.1:9/mcp".to_owned()),
    }
}

/// Stores a login whose access token is to be renewed.
pub async fn log_in_as(login: &PersonLogin, owner: &str, token_endpoint: String, lifetime: Millis) {
    let stored = StoredLogin {
        id: "1".to_owned(),
        access: "old".to_owned(),
        refresh: Some("refresh".to_owned()),
        renew_at: Some(now()),
        expires_at: Some(now() + lifetime),
        scope: None,
        since: 0,
        source: token_source(token_endpoint),
        renewing_until: 0,
    };
    login.service.write(owner, "login:notes", &stored, None, ExpectedValue::Any).await.unwrap();
}
