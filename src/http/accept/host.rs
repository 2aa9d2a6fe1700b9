//! Hosts and origins that are this server's, or this machine's.

use agui_base::host_names::Host;

pub(crate) fn is_loopback_origin(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.and_then(Host::parse).is_some_and(|host| host.is_loopback())
}

/// Returns whether a host is certainly this server: a name under localhost, an allowed name, or an IP address, which no
/// page can rebind.
pub(crate) fn is_own(host: &str, allowed: &[String]) -> bool {
    let is_own = |host: Host| {
        matches!(host, Host::Address(_))
            || host.is_loopback()
            || allowed.iter().any(|allowed| Host::parse(allowed).as_ref() == Some(&host))
    };
    Host::parse(host).is_some_and(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        let is_loopback = |host: &str| is_loopback_origin(&format!("http://{host}"));
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "app.localhost:3000",
            "127.0.0.1",
            "127.1.2.3:80",
            "[::1]:8080",
            "[::1]",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_loopback(host) && is_own(host, &[]), "{host}");
        }
        for host in ["10.0.0.1", "10.0.0.1:8080", "0.0.0.0", "[::2]"] {
            assert!(!is_loopback(host) && is_own(host, &[]), "{host}");
        }
        for host in [
            "",
            "evil.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "127.0.0.1.nip.io:8080",
            "[::1",
            "::1",
            "localhost:80@evil.com",
            "localhost:x",
            "notlocalhost",
            "[::1]evil.com",
            "2130706433",
        ] {
            assert!(!is_loopback(host) && !is_own(host, &[]), "{host}");
        }
    }

    #[test]
    fn an_allowed_name_is_compared_without_port_and_case() {
        let allowed = ["Agents.example.com".to_owned()];
        for host in
            ["agents.example.com", "AGENTS.example.com:8080", "agents.example.com.", "localhost"]
        {
            assert!(is_own(host, &allowed), "{host}");
        }
        for host in [
            "example.com",
            "x.agents.example.com",
            "agents.example.com.evil.com",
            "agents.example.com:x",
            "*",
        ] {
            assert!(!is_own(host, &allowed), "{host}");
        }
    }

    #[test]
    fn an_origin_needs_a_scheme() {
        assert!(is_loopback_origin("http://localhost:5173"));
        assert!(is_loopback_origin("https://127.0.0.1"));
        for origin in [
            "null",
            "localhost",
            "http://evil.com",
            "http://localhost.evil.com",
            "file://localhost",
            "",
        ] {
            assert!(!is_loopback_origin(origin), "{origin}");
        }
    }
}
