//! A client for URLs that another server names: it connects to public addresses, and to private ones of named hosts only.

use std::{io, net::SocketAddr, sync::Arc};

use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

use super::{ClientError, ClientOptions, builder};
use crate::host_names::{Host, is_public};

/// The hosts that may have private addresses.
#[derive(Debug, Clone)]
pub struct NamedHosts(Arc<[Host]>);

impl NamedHosts {
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self(names.into_iter().filter_map(Host::parse).collect())
    }

    /// Returns a client that uses no proxy and follows no redirect.
    pub fn client(&self) -> Result<Client, ClientError> {
        Ok(builder(&ClientOptions::default())?.no_proxy().dns_resolver(self.clone()).build()?)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn has(&self, host: &Host) -> bool {
        self.0.contains(host)
    }

    /// Returns whether a URL has no private address as its host. The addresses of a name are
    /// checked when the client connects.
    pub fn permits(&self, url: &Url) -> bool {
        let is_permitted = |host: Host| {
            let is_public = match host {
                Host::Address(address) => is_public(address),
                Host::Name(_) => !host.is_loopback(),
            };
            is_public || self.has(&host)
        };
        url.host_str().and_then(Host::parse).is_some_and(is_permitted)
    }
}

impl Resolve for NamedHosts {
    fn resolve(&self, name: Name) -> Resolving {
        let hosts = self.clone();
        Box::pin(async move {
            let is_named = Host::parse(name.as_str()).is_some_and(|host| hosts.has(&host));
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> =
                found.filter(|found| is_named || is_public(found.ip())).collect();
            if found.is_empty() {
                let problem = format!("{} has no public address", name.as_str());
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, problem).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_permitted_for_named_hosts_only() {
        let hosts = NamedHosts::new(["10.0.0.7", "id.internal"]);
        let permits = |url: &str| hosts.permits(&Url::parse(url).unwrap());
        for url in [
            "https://id.example.com/x",
            "https://10.0.0.7/",
            "https://1.1.1.1/",
            "https://[2606:4700::1]/",
        ] {
            assert!(permits(url), "{url}");
        }
        for host in [
            "10.0.0.8",
            "127.0.0.1",
            "localhost",
            "localhost.",
            "LOCALHOST..",
            "app.localhost.:8443",
            "127.0.0.1.",
            "169.254.169.254",
            "192.168.1.1",
            "172.16.0.1",
            "100.64.0.1",
            "0.0.0.0",
            "[::1]",
            "[::ffff:10.0.0.1]",
            "[fd00::1]",
            "[fe80::1]",
            "[2002:a00:1::]",
            "[64:ff9b::a00:1]",
            "2130706433",
        ] {
            assert!(!permits(&format!("https://{host}/")), "{host}");
        }
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_private_address_is_not_connected_to() {
        let get = async |named: &[&str]| {
            let hosts = NamedHosts::new(named.iter().copied());
            crate::text::error_chain(
                &hosts.client().unwrap().get("http://localhost:9/").send().await.unwrap_err(),
            )
        };
        assert!(get(&[]).await.contains("has no public address"));
        assert!(!get(&["localhost."]).await.contains("has no public address"));
    }
}
