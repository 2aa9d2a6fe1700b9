//! Loopback names, as a `Host` header or an `Origin` writes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True for names under localhost, too, which DNS cannot change. The host may have a port.
pub(super) fn is_loopback(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return is_port(port) && address.parse::<Ipv6Addr>().is_ok_and(|address| is_loopback_address(address.into()));
    }
    let (name, port) = match host.find(':') {
        Some(colon) => host.split_at(colon),
        None => (host, ""),
    };
    if !is_port(port) {
        return false;
    }
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    // Browsers resolve all names under localhost to the loopback (RFC 6761, section 6.3).
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| is_loopback_address(address.into()))
}

pub(super) fn is_loopback_origin(origin: &str) -> bool {
    let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    host.is_some_and(is_loopback)
}

fn is_loopback_address(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn is_port(text: &str) -> bool {
    match text.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        None => text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
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
            assert!(is_loopback(host), "{host}");
        }
        for host in [
            "",
            "evil.com",
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "127.0.0.1.nip.io:8080",
            "10.0.0.1",
            "0.0.0.0",
            "[::2]",
            "[::1",
            "::1",
            "localhost:80@evil.com",
            "localhost:x",
            "notlocalhost",
            "[::1]evil.com",
        ] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn an_origin_needs_a_scheme() {
        assert!(is_loopback_origin("http://localhost:5173"));
        assert!(is_loopback_origin("https://127.0.0.1"));
        for origin in ["null", "localhost", "http://evil.com", "http://localhost.evil.com", "file://localhost", ""] {
            assert!(!is_loopback_origin(origin), "{origin}");
        }
    }
}
