//! Signatures of AWS, version 4 (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>).

use http::{HeaderMap, HeaderName, HeaderValue, header::AUTHORIZATION};
use jiff::Timestamp;
use reqwest::Url;
use ring::{digest, hmac};
use secrecy::ExposeSecret;

use super::AwsKeys;
use agui_base::text::{hex, path_segment};

/// The name of Bedrock in signatures.
const SERVICE: &str = "bedrock";

/// Returns the headers that sign a request (POST) with a body of JSON.
///
/// # Errors
/// If a key has characters that a header cannot carry.
pub(crate) fn signed_headers(
    keys: &AwsKeys,
    url: &Url,
    body: &[u8],
    now: Timestamp,
) -> Result<HeaderMap, String> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let hash = hex(digest::digest(&digest::SHA256, body).as_ref());
    let mut signed = vec![
        ("content-type", "application/json".to_owned()),
        ("host", format!("{}{port}", url.host_str().unwrap_or_default())),
        ("x-amz-content-sha256", hash.clone()),
        ("x-amz-date", time.clone()),
    ];
    let AwsKeys { region, given } = keys;
    signed.extend(
        given.token.iter().map(|token| ("x-amz-security-token", token.expose_secret().to_owned())),
    );
    let mut query: Vec<_> = url
        .query_pairs()
        .map(|(name, value)| (path_segment(&name), path_segment(&value)))
        .collect();
    query.sort();
    let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let lines: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    // The signed path is encoded once more than the sent one.
    let path: Vec<_> = url.path().split('/').map(path_segment).collect();
    let request =
        format!("POST\n{}\n{}\n{lines}\n{names}\n{hash}", path.join("/"), query.join("&"));

    let date = &time[..8];
    let scope = format!("{date}/{region}/{SERVICE}/aws4_request");
    let request_hash = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{request_hash}");
    let secret = format!("AWS4{}", given.secret_access_key.expose_secret());
    let mac = |key: &[u8], text: &str| {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
    };
    let key = [date, region, SERVICE, "aws4_request"]
        .iter()
        .fold(secret.into_bytes(), |key, part| mac(&key, part).as_ref().to_vec());
    let signature = hex(mac(&key, &text).as_ref());
    let id = &given.access_key_id;
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
    );

    let sent = signed.into_iter().filter(|(name, _)| name.starts_with("x-amz-"));
    let sent = sent.map(|(name, value)| (HeaderName::from_static(name), value));
    let headers = sent.chain([(AUTHORIZATION, authorization)]).map(|(name, value)| {
        let mut value = HeaderValue::try_from(value)
            .map_err(|_| "a key of AWS has line ends or control characters")?;
        value.set_sensitive(true);
        Ok::<_, &str>((name, value))
    });
    headers.collect::<Result<_, _>>().map_err(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::clouds::GivenKeys;

    /// The signature is botocore's.
    #[test]
    fn a_request_is_signed_with_its_path_query_body_and_token() {
        let given = GivenKeys {
            access_key_id: "AKID".to_owned(),
            secret_access_key: "secret/+".into(),
            token: Some("token==".into()),
            expiration: None,
        };
        let keys = AwsKeys { region: "eu-west-1".to_owned(), given };
        let host = "https://bedrock-runtime.eu-west-1.amazonaws.com:8443";
        let url =
            format!("{host}/model/arn:aws%2Fm%201/invoke-with-response-stream?b=c%20d&a=~%2F");
        let now: Timestamp = "2026-11-27T16:00:00Z".parse().unwrap();
        let headers =
            signed_headers(&keys, &url.parse().unwrap(), "{\"a\":\"é\"}".as_bytes(), now).unwrap();
        let authorization = headers[AUTHORIZATION].to_str().unwrap();
        let expected = "AWS4-HMAC-SHA256 Credential=AKID/20261127/eu-west-1/bedrock/aws4_request, \
                        SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, \
                        Signature=e947ff85dbdee5bcd3610b99925529c85cfa285a6ea58661735b38bbe0969052";
        assert_eq!(authorization, expected);
        assert_eq!(
            [&headers["x-amz-date"], &headers["x-amz-security-token"]],
            ["20261127T160000Z", "token=="]
        );
        assert!(headers.values().all(HeaderValue::is_sensitive));
    }
}
