//! The names of headers whose values are secret.

/// Parts of such names.
const SECRET_PARTS: [&str; 9] =
    ["auth", "cookie", "key", "token", "secret", "password", "credential", "session", "signature"];

/// Returns whether a header's name suggests that its value is secret, such as `Authorization` or `X-Api-Key`.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| name.contains(part))
}

/// Returns the value of an environment variable without spaces around it.
///
/// # Errors
/// The problem of a variable that is not set.
pub fn secret_variable(name: &str) -> Result<String, String> {
    let value = std::env::var(name).unwrap_or_default().trim().to_owned();
    if value.is_empty() { Err(unset_variable(name)) } else { Ok(value) }
}

/// Returns the problem of an environment variable that is not set. If the name is not spelled like
/// a variable, it may be a key, so the text does not repeat it.
pub(crate) fn unset_variable(name: &str) -> String {
    if is_variable_name(name) {
        format!("the environment variable {name} is not set")
    } else {
        "no environment variable has this name: name a variable here, such as \"MY_KEY\", and put the key into it"
            .to_owned()
    }
}

/// True for names such as `MY_KEY_2`.
pub fn is_variable_name(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_secrets_are_known_by_their_names() {
        for name in [
            "Authorization",
            "X-Api-Key",
            "api-key",
            "X-Auth-Token",
            "x-auth",
            "x-password",
            "Cookie",
            "Ocp-Apim-Subscription-Key",
        ] {
            assert!(is_secret_header(name), "{name}");
        }
        for name in ["HTTP-Referer", "X-Title", "OpenAI-Organization", "anthropic-beta", "x-trace"]
        {
            assert!(!is_secret_header(name), "{name}");
        }
    }
}
