//! The error of a wrong option.

/// An option that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", prefix(path))]
#[non_exhaustive]
pub struct InvalidOption {
    /// The keys that lead to the option, such as `["approval_of", "write_file"]`. Empty for the options as a whole.
    pub path: Vec<String>,
    /// The problem, and what to do about it. It shows no secrets.
    pub problem: String,
}

impl InvalidOption {
    /// An error of the option with this key.
    #[doc(hidden)]
    pub fn new(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: vec![key.into()], problem: problem.into() }
    }

    /// An error of the option to which these keys lead.
    pub fn at(path: &[&str], problem: impl Into<String>) -> Self {
        Self { path: path.iter().map(|key| (*key).to_owned()).collect(), problem: problem.into() }
    }

    /// An error of the options as a whole.
    #[doc(hidden)]
    pub fn whole(problem: impl Into<String>) -> Self {
        Self { path: Vec::new(), problem: problem.into() }
    }
}

fn prefix(path: &[String]) -> String {
    if path.is_empty() { String::new() } else { format!("{}: ", path.join(".")) }
}
