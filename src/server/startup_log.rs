//! The lines that a server logs when it starts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Server;

/// Logs the address, the agents, the authentication, the place of the data, and a command to try.
pub(super) fn log_start(address: SocketAddr, server: &Server) {
    let names = server.configured.agent_names().chain(server.agents.keys().map(String::as_str));
    let agents = names.collect::<Vec<_>>().join(", ");
    let authentication = server.auth.method();
    tracing::info!(%address, %agents, authentication, store = server.store_name, "listening on http://{address}");
    tracing::info!(command = %curl(address, server.auth.expects_bearer()), "to try it");
    if is_unreachable(address, std::process::id()) {
        let problem = "nobody outside of this container reaches a loopback address: set [server] listen";
        tracing::warn!(%address, example = "0.0.0.0:8080", "{problem}");
    }
}

/// True for a loopback address in a container, whose first process is the server.
fn is_unreachable(address: SocketAddr, process_id: u32) -> bool {
    process_id == 1 && address.ip().to_canonical().is_loopback()
}

/// A `curl` command that runs the default agent.
fn curl(address: SocketAddr, with_key: bool) -> String {
    let address = reachable(address);
    let key = if with_key { " -H \"Authorization: Bearer $KEY\"" } else { "" };
    let input = r#"{"threadId":"t1","runId":"r1","messages":[{"id":"m1","role":"user","content":"Hello"}]}"#;
    format!("curl -N http://{address}/send-message -H 'Content-Type: application/json'{key} -d '{input}'")
}

/// Returns the address of a server for this machine. A server that listens on all addresses also listens on loopback.
pub(crate) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::RunAgentInput;

    #[test]
    fn a_loopback_address_is_unreachable_for_the_first_process_of_a_container() {
        let is_unreachable = |address: &str, process_id| is_unreachable(address.parse().unwrap(), process_id);
        assert!(is_unreachable("127.0.0.1:8080", 1) && is_unreachable("[::1]:8080", 1));
        assert!(!is_unreachable("0.0.0.0:8080", 1) && !is_unreachable("127.0.0.1:8080", 2));
    }

    #[test]
    fn the_command_names_loopback_and_a_key_if_one_is_needed() {
        let command = curl("[::]:8080".parse().unwrap(), false);
        assert!(command.starts_with("curl -N http://[::1]:8080/send-message -H 'Content-Type"), "{command}");
        assert!(!command.contains("Authorization"), "{command}");
        assert!(curl("0.0.0.0:1".parse().unwrap(), true).contains(r#" -H "Authorization: Bearer $KEY""#));
        let body = command.split("-d ").nth(1).unwrap().trim_matches('\'');
        serde_json::from_str::<RunAgentInput>(body).unwrap();
    }
}
