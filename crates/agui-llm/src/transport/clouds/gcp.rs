//! Google's application default credentials: the file in `GOOGLE_APPLICATION_CREDENTIALS`, the file
//! of `gcloud auth application-default login`, or the server for metadata
//! (<https://cloud.google.com/docs/authentication/application-default-credentials>).

use std::{
    io::ErrorKind,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use reqwest::Method;
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;

use super::{client::CredentialsClient, secret, variable};
use agui_base::upstream::ClientError;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const METADATA_HOST: &str = "metadata.google.internal";
const METADATA_PATH: &str = "computeMetadata/v1/instance/service-accounts/default/token";
const ASSERTION_LIFETIME: Duration = Duration::from_secs(3600);

pub(crate) struct GcpCredentials(CredentialsClient);

/// A token, with the time for which it is valid.
#[derive(Deserialize)]
pub(crate) struct AccessToken {
    #[serde(deserialize_with = "secret")]
    pub(crate) access_token: SecretString,
    /// The lifetime in seconds.
    pub(crate) expires_in: u64,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CredentialsFile {
    ServiceAccount(ServiceAccount),
    AuthorizedUser {
        client_id: String,
        client_secret: String,
        refresh_token: String,
        #[serde(default = "token_url")]
        token_uri: String,
    },
    #[serde(other)]
    Unsupported,
}

#[derive(Deserialize)]
struct ServiceAccount {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    #[serde(default = "token_url")]
    token_uri: String,
}

fn token_url() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

impl GcpCredentials {
    pub(crate) fn new() -> Result<Self, ClientError> {
        CredentialsClient::new().map(Self)
    }

    /// Requests a new token.
    ///
    /// # Errors
    /// A text for the log.
    pub(crate) async fn token(&self) -> Result<AccessToken, String> {
        let answer = match read_file().await? {
            Some(CredentialsFile::ServiceAccount(account)) => {
                let grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                let form = [("grant_type", grant_type), ("assertion", &account.assertion()?)];
                self.0.form(&account.token_uri, &form).await?
            }
            Some(CredentialsFile::AuthorizedUser {
                client_id,
                client_secret,
                refresh_token,
                token_uri,
            }) => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("client_id", &client_id),
                    ("client_secret", &client_secret),
                    ("refresh_token", &refresh_token),
                ];
                self.0.form(&token_uri, &form).await?
            }
            Some(CredentialsFile::Unsupported) => {
                return Err("the file of Google's credentials is neither a service account's nor a user's: let a command print \
                            the key, gcloud auth application-default print-access-token"
                    .to_owned());
            }
            None => {
                let host =
                    variable("GCE_METADATA_HOST").unwrap_or_else(|| METADATA_HOST.to_owned());
                let url = format!("http://{host}/{METADATA_PATH}");
                self.0.metadata(Method::GET, &url, &[("Metadata-Flavor", "Google")]).await?
            }
        };
        serde_json::from_slice(&answer).map_err(|_| "Google's answer has no token".to_owned())
    }
}

/// Reads the credentials file. Returns `None` if there is no file.
async fn read_file() -> Result<Option<CredentialsFile>, String> {
    let named = variable("GOOGLE_APPLICATION_CREDENTIALS").map(PathBuf::from);
    let Some(path) = named.clone().or_else(file_of_gcloud) else { return Ok(None) };
    let text = match tokio::fs::read(&path).await {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("the file {} cannot be read: {error}", path.display())),
    };
    // An error of the parser may repeat a value.
    let invalid = |_| format!("the file {} is not a file of Google's credentials", path.display());
    serde_json::from_slice(&text).map(Some).map_err(invalid)
}

fn file_of_gcloud() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(variable("HOME")?).join(".config/gcloud"));
    let on_windows = || Some(PathBuf::from(variable("APPDATA")?).join("gcloud"));
    let folder =
        variable("CLOUDSDK_CONFIG").map(PathBuf::from).or_else(on_windows).or_else(home)?;
    Some(folder.join("application_default_credentials.json"))
}

impl ServiceAccount {
    /// Returns a token that the account signs: <https://developers.google.com/identity/protocols/oauth2/service-account>.
    fn assertion(&self) -> Result<String, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.private_key_id});
        let claims = json!({
            "iss": self.client_email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": now.as_secs(),
            "exp": (now + ASSERTION_LIFETIME).as_secs(),
        });
        let part = |part: serde_json::Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let invalid =
            || "the private key of the service account is not an RSA key in PKCS #8".to_owned();
        let base64: String = self
            .private_key
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .map(str::trim)
            .collect();
        let key = STANDARD.decode(base64).map_err(|_| invalid())?;
        let key = RsaKeyPair::from_pkcs8(&key).map_err(|_| invalid())?;
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature)
            .map_err(|_| invalid())?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}
