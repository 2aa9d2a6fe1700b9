//! The HTTP client of object stores: the client of [`upstream`](agui_base::upstream), which trusts
//! the same certificates.

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::{
    ClientOptions, Error,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService,
    },
};
use reqwest::{Body, Client};

use agui_base::upstream;

#[derive(Debug)]
pub(super) struct UpstreamConnector;

impl HttpConnector for UpstreamConnector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = upstream::object_client();
        client
            .map(|client| HttpClient::new(UpstreamService(client)))
            .map_err(|error| Error::Generic { store: "HTTP", source: error.into() })
    }
}

#[derive(Debug)]
struct UpstreamService(Client);

#[async_trait]
impl HttpService for UpstreamService {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let request = request.map(Body::wrap).try_into().map_err(http_error)?;
        let response: http::Response<Body> =
            self.0.execute(request).await.map_err(http_error)?.into();
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(http_error))))
    }
}

/// The URL is left out, because it can have a signature.
fn http_error(error: reqwest::Error) -> HttpError {
    let kind = match &error {
        error if error.is_timeout() => HttpErrorKind::Timeout,
        error if error.is_connect() => HttpErrorKind::Connect,
        error if error.is_builder() => HttpErrorKind::Unknown,
        _ => HttpErrorKind::Interrupted,
    };
    HttpError::new(kind, error.without_url())
}
