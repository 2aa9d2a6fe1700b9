//! The TLS settings of all clients. They are made once, because each reading of the system's certificates takes as long as
//! hundreds of requests, and they hold a megabyte.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, crypto::ring};
use rustls_platform_verifier::Verifier;
use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// Returns settings that trust the system's certificates and Mozilla's list, because some images have no certificates.
pub(super) fn config() -> Result<ClientConfig, rustls::Error> {
    static CONFIG: OnceLock<Result<ClientConfig, rustls::Error>> = OnceLock::new();
    CONFIG.get_or_init(read_certificates).clone()
}

fn read_certificates() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier =
        Verifier::new_with_extra_roots(TLS_SERVER_ROOT_CERTS.iter().cloned(), provider.clone())?;
    // "Dangerous" is any verifier that is not rustls's own; this verifier is by rustls's authors,
    // too, and is reqwest's default.
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous();
    let mut config =
        builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
