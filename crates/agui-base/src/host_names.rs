//! Host names in a `Host` header, an `Origin` or a URL, with or without a port.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A host in its canonical form, so that two spellings of a host are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// An IPv4 address is never written as an IPv6 address.
    Address(IpAddr),
    /// A name in lower case, without dots at its end.
    Name(String),
}

impl Host {
    /// Returns `None` if the text is not a host with or without a port.
    pub fn parse(host: &str) -> Option<Self> {
        if let Some(rest) = host.strip_prefix('[') {
            let (address, port) = rest.split_once(']')?;
            return is_port(port).then(|| address.parse::<Ipv6Addr>().ok())?.map(Self::address);
        }
        let (name, port) = match host.find(':') {
            Some(colon) => host.split_at(colon),
            None => (host, ""),
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let host = name.parse::<Ipv4Addr>().map_or(Self::Name(name), Self::address);
        (is_port(port) && host != Self::Name(String::new())).then_some(host)
    }

    fn address(address: impl Into<IpAddr>) -> Self {
        Self::Address(address.into().to_canonical())
    }

    /// Returns whether a browser connects to its own machine. True also for names under localhost,
    /// because DNS cannot change them.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            // Browsers resolve all names under localhost to the loopback (RFC 6761, section 6.3).
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        }
    }
}

/// Returns whether an address is one of the Internet, not of this machine or of a private network.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            let is_shared = a == 100 && (64..128).contains(&b);
            let is_special = a == 0
                || a >= 224
                || is_shared
                || (a == 198 && (b == 18 || b == 19))
                || (a == 192 && b == 0);
            !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_special)
        }
        // Global unicast, without the prefixes that contain addresses of version 4 (Teredo, 6to4) and documentation.
        IpAddr::V6(ip) => (ip.segments()[0] & 0xe000) == 0x2000 && !holds_other(ip),
    }
}

fn holds_other(ip: Ipv6Addr) -> bool {
    let [first, second, ..] = ip.segments();
    first == 0x2002 || (first == 0x2001 && (second == 0 || second == 0xdb8))
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
    fn a_host_is_the_same_in_each_way_to_write_it() {
        for [one, other] in [
            ["LOCALHOST.", "localhost:8080"],
            ["id.example.com..", "ID.example.com"],
            ["127.0.0.1.", "[::ffff:127.0.0.1]:1"],
        ] {
            assert_eq!(Host::parse(one), Host::parse(other), "{one}");
            assert!(Host::parse(one).is_some(), "{one}");
        }
        for wrong in ["", ".", ":80", "[::1", "a:x"] {
            assert_eq!(Host::parse(wrong), None, "{wrong}");
        }
    }
}
