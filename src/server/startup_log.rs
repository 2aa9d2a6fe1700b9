//! The lines that a server logs when it starts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Server;
use crate::http::{Credential, example};

/// The variable with the key of `config/docker.toml`, and so of the image.
const KEY_VARIABLE: &str = "AGUI_API_KEY";

/// Logs the address, the agents, the authentication, the place of the data, and a command to try.
pub(super) fn log_start(address: SocketAddr, agents: &[&str], server: &Server) {
    let agents = agents.join(", ");
    let authentication = server.auth.method();
    tracing::info!(%address, %agents, authentication, store = server.store_name, "listening on http://{address}");
    let url = format!("http://{}", reachable(address));
    tracing::info!(command = %example(&url, Credential::for_authenticator(&server.auth)), "to try it");
    if authentication == "none" && std::env::var_os(KEY_VARIABLE).is_some() {
        tracing::warn!(
            "{KEY_VARIABLE} is set, but no request needs a key: set [auth] api_keys = [{{ name = \"default\", env = \"{KEY_VARIABLE}\" }}]"
        );
    }
    if is_unreachable(address, std::process::id()) {
        tracing::warn!(
            %address,
            "a loopback address cannot be reached from outside of the container: set [server] listen, such as \"0.0.0.0:8080\""
        );
    }
}

/// True for a loopback address in a container, whose first process is the server.
fn is_unreachable(address: SocketAddr, process_id: u32) -> bool {
    process_id == 1 && address.ip().to_canonical().is_loopback()
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

    #[test]
    fn a_loopback_address_is_unreachable_for_the_first_process_of_a_container() {
        let is_unreachable =
            |address: &str, process_id| is_unreachable(address.parse().unwrap(), process_id);
        assert!(is_unreachable("127.0.0.1:8080", 1) && is_unreachable("[::1]:8080", 1));
        assert!(!is_unreachable("0.0.0.0:8080", 1) && !is_unreachable("127.0.0.1:8080", 2));
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_through_loopback() {
        for (address, expected) in [
            ("[::]:8080", "[::1]:8080"),
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("10.0.0.1:1", "10.0.0.1:1"),
        ] {
            assert_eq!(reachable(address.parse().unwrap()).to_string(), expected);
        }
    }
}
