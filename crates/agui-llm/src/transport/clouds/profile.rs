//! The profile of AWS's tools, in two files (<https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>).

use std::{collections::HashMap, path::PathBuf};

use super::{GivenKeys, parse, variable};
use crate::transport::key_command::output;

/// In Windows, a backslash separates folders.
const BACKSLASH_ESCAPES: bool = cfg!(not(windows));

pub(super) struct AwsProfile {
    name: String,
    /// False for the default profile.
    is_named: bool,
    settings: HashMap<String, String>,
}

impl AwsProfile {
    /// Reads the profile that `AWS_PROFILE` names, or the default one. The settings of the file of credentials come first.
    pub(super) async fn read() -> Result<Self, String> {
        let named = variable("AWS_PROFILE");
        let is_named = named.is_some();
        let name = named.unwrap_or_else(|| "default".to_owned());
        let mut settings = HashMap::new();
        for (variable_of_path, file, section) in [
            ("AWS_CONFIG_FILE", "config", format!("profile {name}")),
            ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name.clone()),
        ] {
            let in_home = || {
                Some(
                    PathBuf::from(variable("HOME").or_else(|| variable("USERPROFILE"))?)
                        .join(".aws")
                        .join(file),
                )
            };
            let Some(path) = variable(variable_of_path).map(PathBuf::from).or_else(in_home) else {
                continue;
            };
            match tokio::fs::read_to_string(&path).await {
                Ok(text) => {
                    settings.extend(section_of(&text, |header| header == section || header == name))
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    return Err(format!("the file {} cannot be read: {error}", path.display()));
                }
            }
        }
        Ok(Self { name, is_named, settings })
    }

    pub(super) fn region(&self) -> Option<String> {
        self.settings.get("region").cloned()
    }

    /// Returns the keys of the profile, or the output of its command; `None` if the default profile
    /// has no keys.
    pub(super) async fn keys(&self) -> Result<Option<GivenKeys>, String> {
        let setting = |name: &str| self.settings.get(name).filter(|value| !value.is_empty());
        if let (Some(id), Some(secret)) =
            (setting("aws_access_key_id"), setting("aws_secret_access_key"))
        {
            let token = setting("aws_session_token").map(|token| token.as_str().into());
            let (access_key_id, secret_access_key) = (id.clone(), secret.as_str().into());
            return Ok(Some(GivenKeys {
                access_key_id,
                secret_access_key,
                token,
                expiration: None,
            }));
        }
        let name = &self.name;
        if let Some(command) = setting("credential_process") {
            let printed = match words_of(command) {
                Some(words) => output(&words).await,
                None => Err("is no command, or a quote in it does not end".to_owned()),
            };
            let printed =
                printed.map_err(|problem| format!("credential_process of {name:?} {problem}"))?;
            return parse(&printed).map(Some);
        }
        if self.is_named
            || setting("role_arn").or(setting("sso_session")).or(setting("sso_start_url")).is_some()
        {
            return Err(format!(
                "the profile {name:?} has no keys: if it has a role or SSO, add a profile with credential_process = aws \
                 configure export-credentials --format process --profile {name}, and name it in AWS_PROFILE"
            ));
        }
        Ok(None)
    }
}

/// Splits a command as a shell does, without expansions.
fn words_of(command: &str) -> Option<Vec<String>> {
    let words = if BACKSLASH_ESCAPES {
        shlex::split(command)
    } else {
        shlex::split(&command.replace('\\', r"\\"))
    };
    words.filter(|words| !words.is_empty())
}

/// Returns the settings below the headers that `is_meant` accepts. Indented lines belong to the
/// setting above.
fn section_of(text: &str, is_meant: impl Fn(&str) -> bool) -> HashMap<String, String> {
    let mut settings = HashMap::new();
    let mut is_inside = false;
    for line in text.lines().filter(|line| !line.starts_with([' ', '\t', '#', ';'])) {
        if let Some(header) =
            line.trim_end().strip_prefix('[').and_then(|line| line.split_once(']'))
        {
            is_inside =
                is_meant(header.0.split_whitespace().collect::<Vec<_>>().join(" ").as_str());
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_inside) {
            let value = value.split(" #").next().unwrap_or_default();
            settings.insert(name.trim().to_ascii_lowercase(), value.trim().to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn keys_of(command: String) -> Result<Option<GivenKeys>, String> {
        let settings = HashMap::from([("credential_process".to_owned(), command)]);
        AwsProfile { name: "work".to_owned(), is_named: true, settings }.keys().await
    }

    #[tokio::test]
    async fn quoted_words_of_a_command_may_have_spaces() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my keys.json");
        std::fs::write(&file, r#"{ "AccessKeyId": "AK", "SecretAccessKey": "s" }"#).unwrap();
        let file = file.display();
        for command in [format!("cat \"{file}\""), format!("'cat' -u '{file}'")] {
            assert_eq!(keys_of(command).await.unwrap().unwrap().access_key_id, "AK");
        }
    }

    #[tokio::test]
    async fn a_command_without_words_or_with_an_open_quote_is_refused() {
        for command in ["# no command", "cat \"x"] {
            let problem = keys_of(command.to_owned()).await.err().unwrap();
            assert_eq!(
                problem,
                "credential_process of \"work\" is no command, or a quote in it does not end"
            );
        }
    }

    #[test]
    fn a_section_is_read_without_comments_and_nested_settings() {
        let text = "# c\n[default]\nregion=a\n[profile  work]\nAWS_Access_Key_Id = AK # mine\nregion = b=c\ns3 =\n  region = no\n; c\n[other]\nregion = d\n";
        let section = section_of(text, |header| header == "profile work");
        let mut settings: Vec<_> =
            section.iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.sort();
        assert_eq!(settings, ["aws_access_key_id=AK", "region=b=c", "s3="]);
    }
}
