//! The keys of AWS, in the order of its own tools: environment variables, web identity, profiles, a container, an instance
//! (<https://docs.aws.amazon.com/sdkref/latest/guide/standardized-credentials.html>).

use std::time::Duration;

use jiff::Timestamp;
use reqwest::{Method, Url};

use super::{
    AwsKeys, GivenKeys, client::CredentialsClient, no_keys, parse, profile::AwsProfile, variable,
};
use agui_base::upstream::ClientError;

const CONTAINER: &str = "http://169.254.170.2";
const INSTANCE: &str = "http://169.254.169.254";
const INSTANCE_PATH: &str = "latest/meta-data/iam/security-credentials/";
/// The lifetime of keys without an expiry. They may be replaced in their file.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(600);

pub(crate) struct AwsCredentials {
    client: CredentialsClient,
    /// The region in the provider's URL.
    region: Option<String>,
}

impl AwsCredentials {
    pub(crate) fn new(url: &Url) -> Result<Self, ClientError> {
        Ok(Self { client: CredentialsClient::new()?, region: region_of(url) })
    }

    /// Returns keys, and the time for which they are valid.
    ///
    /// # Errors
    /// A text for the log.
    pub(crate) async fn keys(&self) -> Result<(AwsKeys, Duration), String> {
        let profile = AwsProfile::read().await?;
        let region_variable = || variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = self.region.clone().or_else(region_variable).or_else(|| profile.region());
        let region = region.ok_or("the region of AWS is unknown: set AWS_REGION")?;
        let given = match (from_variables(), variable("AWS_WEB_IDENTITY_TOKEN_FILE")) {
            (Some(given), _) => given,
            (None, Some(file)) => self.web_identity(&file, &region).await?,
            (None, None) => match profile.keys().await? {
                Some(given) => given,
                None => parse(&self.machine_keys().await?)?,
            },
        };
        let expires: Option<Timestamp> =
            given.expiration.as_deref().and_then(|text| text.parse().ok());
        let lifetime = expires
            .map(|at| Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default());
        Ok((AwsKeys { region, given }, lifetime.unwrap_or(UNKNOWN_LIFETIME)))
    }

    /// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html>
    async fn web_identity(&self, file: &str, region: &str) -> Result<GivenKeys, String> {
        let token = read_text(file).await?;
        let role = variable("AWS_ROLE_ARN")
            .ok_or("AWS_ROLE_ARN is not set: the token of the web identity needs a role")?;
        let session = variable("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "agui-server".to_owned());
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let url = variable("AWS_ENDPOINT_URL_STS")
            .unwrap_or_else(|| format!("https://sts.{region}.{domain}/"));
        let form = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("RoleArn", &role),
            ("RoleSessionName", &session),
            ("WebIdentityToken", token.trim()),
        ];
        let answer = self.client.form(&url, &form).await?;
        let xml = String::from_utf8_lossy(&answer);
        // XML escapes no character of the values.
        let element = |name: &str| {
            let (_, rest) = xml.split_once(&format!("<{name}>"))?;
            Some(rest.split_once('<')?.0.trim().to_owned())
        };
        let keys = || {
            Some(GivenKeys {
                access_key_id: element("AccessKeyId")?,
                secret_access_key: element("SecretAccessKey")?.into(),
                token: Some(element("SessionToken")?.into()),
                expiration: element("Expiration"),
            })
        };
        keys().ok_or_else(no_keys)
    }

    /// Asks the server for metadata of a container, or of an instance.
    async fn machine_keys(&self) -> Result<Vec<u8>, String> {
        let container = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
            .map(|path| format!("{CONTAINER}{path}"));
        if let Some(url) = container.or_else(|| variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
            let token = match variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
                Some(file) => Some(read_text(&file).await?.trim().to_owned()),
                None => variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
            };
            let headers: Vec<_> =
                token.iter().map(|token| ("authorization", token.as_str())).collect();
            return self.client.metadata(Method::GET, &url, &headers).await;
        }
        if variable("AWS_EC2_METADATA_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Err(
                "no keys of AWS were found, and AWS_EC2_METADATA_DISABLED is set".to_owned()
            );
        }
        let base =
            variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| INSTANCE.to_owned());
        let base = base.trim_end_matches('/');
        let ttl = [("x-aws-ec2-metadata-token-ttl-seconds", "60")];
        let token =
            self.client.metadata(Method::PUT, &format!("{base}/latest/api/token"), &ttl).await;
        let token = token.map_err(|problem| format!("no keys of AWS were found: {problem}"))?;
        let token = String::from_utf8_lossy(&token);
        let headers = [("x-aws-ec2-metadata-token", &*token)];
        let role =
            self.client.metadata(Method::GET, &format!("{base}/{INSTANCE_PATH}"), &headers).await?;
        let role = String::from_utf8_lossy(&role);
        self.client
            .metadata(Method::GET, &format!("{base}/{INSTANCE_PATH}{}", role.trim()), &headers)
            .await
    }
}

fn from_variables() -> Option<GivenKeys> {
    Some(GivenKeys {
        access_key_id: variable("AWS_ACCESS_KEY_ID")?,
        secret_access_key: variable("AWS_SECRET_ACCESS_KEY")?.into(),
        token: variable("AWS_SESSION_TOKEN").map(Into::into),
        expiration: None,
    })
}

async fn read_text(path: &str) -> Result<String, String> {
    tokio::fs::read_to_string(path)
        .await
        .map_err(|error| format!("the file {path} cannot be read: {error}"))
}

/// Returns the region in a host such as `bedrock-runtime.eu-west-1.amazonaws.com`, also after the
/// name of a VPC's endpoint.
fn region_of(url: &Url) -> Option<String> {
    let mut labels = url.host_str()?.split('.').skip_while(|label| !label.starts_with("bedrock"));
    labels.nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_region_is_read_in_the_host() {
        for (host, region) in [
            ("bedrock-runtime.eu-west-1.amazonaws.com", Some("eu-west-1")),
            ("bedrock-runtime-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com", Some("us-east-1")),
            ("127.0.0.1", None),
            ("bedrock", None),
        ] {
            assert_eq!(
                region_of(&Url::parse(&format!("https://{host}/")).unwrap()).as_deref(),
                region,
                "{host}"
            );
        }
    }
}
