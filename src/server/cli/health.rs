//! `agui-server health`: a health check for containers, because the image has no `curl`.

use std::{
    error::Error,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use super::arguments::CommandOptions;
use crate::server::reachable;

const TIMEOUT: Duration = Duration::from_secs(3);

/// Requests `/healthz` of the server on this machine that the options describe.
pub(super) fn check_health(options: CommandOptions) -> Result<(), Box<dyn Error>> {
    let address = reachable(options.read()?.config.server.listen);
    let status =
        status_line(address).map_err(|error| format!("{address} does not answer: {error}"))?;
    if status.starts_with("HTTP/1.1 200 ") {
        Ok(())
    } else {
        Err(format!("{address} answered {status:?}").into())
    }
}

fn status_line(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    stream.take(4096).read_to_end(&mut response)?;
    Ok(String::from_utf8_lossy(&response).lines().next().unwrap_or_default().to_owned())
}
