//! The kinds of failures and refusals of providers, read from the status, the content type and the body of a response,
//! or from an error within a stream.

use std::sync::Arc;

use serde_json::Value;

use agui_base::{RunErrorCode, lenient_json, repairs::Partner, text::is_in};

/// The kind of a provider's refusal or failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Unavailable,
    RateLimited,
    /// The account has no credit or quota left. A retry would fail again.
    QuotaUsedUp,
    /// The key is not accepted.
    Unauthorized,
    /// The key may not do this.
    NoAccess,
    /// The model or the path is unknown.
    NotFound,
    /// The conversation does not fit into the model's context window, or into the tokens of a minute.
    ContextTooLong,
    /// A content filter refused the conversation or the answer.
    Filtered,
    /// The model wrote a call that the provider could not read.
    MalformedCall,
    /// A refusal of the request for another reason, or a failure that a retry would repeat.
    Other,
}

/// A refusal that another form of the request may mend.
#[derive(Debug, Clone)]
pub(crate) struct ProviderRefusal {
    pub(crate) kind: FailureKind,
    /// The body of the response, or the error within a stream.
    pub(crate) body: String,
    /// The refused request; `null` if it is unknown.
    pub(crate) sent: Value,
    /// The names of the members that the configuration adds to each request. No form changes them.
    pub(crate) fixed: Arc<[String]>,
}

impl ProviderRefusal {
    /// Returns the refusal that an error of a model without a transport stands for.
    pub(crate) fn from_error(code: &str, message: &str) -> Option<Self> {
        let kind = match code {
            code if code == RunErrorCode::ContextTooLong.as_str() => FailureKind::ContextTooLong,
            code if code == RunErrorCode::ModelRejected.as_str() => FailureKind::Other,
            _ => return None,
        };
        Some(Self::new(kind, message))
    }

    pub(crate) fn new(kind: FailureKind, body: &str) -> Self {
        Self { kind, body: body.to_owned(), sent: Value::Null, fixed: Arc::default() }
    }

    /// Returns the words and the places, in lower case.
    pub(crate) fn words(&self) -> String {
        let json = serde_json::from_str::<Value>(&self.body).unwrap_or_default();
        let json = json.get(0).unwrap_or(&json);
        let names = [WORD_MEMBERS, PLACE_MEMBERS].concat();
        said(json, &names).unwrap_or_else(|| self.body.clone()).to_lowercase()
    }
}

/// The message of a response, and its kind.
pub(crate) struct ProviderMessage {
    pub(crate) text: String,
    pub(crate) kind: FailureKind,
}

impl ProviderMessage {
    /// Reads the response to a request that was not answered.
    pub(crate) fn read(status: u16, content_type: &str, body: &[u8]) -> Self {
        let body = String::from_utf8_lossy(body);
        let mut value = lenient_json::parse(&body, Partner::Model).unwrap_or_default();
        if let Value::Array(items) = &mut value {
            value = items.first_mut().map(Value::take).unwrap_or_default();
        }
        let error = value.get("error").unwrap_or(&value);
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = ["message", "error", "detail", "msg"].iter().find_map(|name| {
            let found = error.get(name).or_else(|| value.get(name))?;
            text(found).or_else(|| text(found.get(0)?.get("msg")?))
        });
        let message = message.or_else(|| text(error)).unwrap_or_default();
        let said = said(&value, WORD_MEMBERS).unwrap_or_else(|| body.clone().into_owned());
        let is_page = content_type.contains("html") || body.trim_start().starts_with('<');
        let of_status = FailureKind::from_status(status.into());
        let own = match FailureKind::from_error(&value) {
            FailureKind::Other if of_status == FailureKind::RateLimited => of_status,
            own => own,
        };
        let own = own.or_from_message(&said);
        let said = said.to_lowercase();
        // A gateway that knows no model for the content of a request.
        let is_about_content = status == 404 && CONTENT.iter().any(|word| said.contains(word));
        let is_template = status == 500 && TEMPLATE.iter().any(|word| said.contains(word));
        let kind = match own {
            FailureKind::Other if is_about_content && !is_page => own,
            FailureKind::Other | FailureKind::Unavailable if is_template && !is_page => {
                FailureKind::Other
            }
            _ => of_status.with(own, is_page),
        };
        Self { text: message, kind }
    }
}

/// The members of a refusal that have its words. Others can repeat the request.
const WORD_MEMBERS: &[&str] = &[
    "error",
    "errors",
    "message",
    "msg",
    "detail",
    "details",
    "description",
    "metadata",
    "raw",
    "code",
    "type",
];

/// The members of a refusal that have its places.
const PLACE_MEMBERS: &[&str] = &["param", "loc", "field", "fieldViolations"];
/// The words of a 500 that is a refusal by the model's chat template.
const TEMPLATE: &[&str] = &["jinja", "chat template", "chat_template"];
/// The words of a 404 that is about the content of a request.
const CONTENT: &[&str] = &["image", "audio", "video", "document", "media", "vision"];

/// Returns the texts in these members of a refusal, also of the one that a gateway passes on as a text; `None` if it is no
/// JSON object.
fn said(refusal: &Value, names: &[&str]) -> Option<String> {
    refusal.as_object()?;
    let mut text = String::new();
    add_said(refusal, names, MAX_WRAPPINGS, &mut text);
    Some(text)
}

fn add_said(value: &Value, names: &[&str], wrappings: usize, text: &mut String) {
    let Some(wrappings) = wrappings.checked_sub(1) else { return };
    match value {
        Value::String(said) => match serde_json::from_str::<Value>(said) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => {
                add_said(&inner, names, wrappings, text)
            }
            _ => text.extend([said, "\n"]),
        },
        Value::Array(values) => {
            values.iter().for_each(|value| add_said(value, names, wrappings, text))
        }
        Value::Object(members) => {
            let members = names.iter().filter_map(|name| members.get(*name));
            members.for_each(|value| add_said(value, names, wrappings, text));
        }
        _ => {}
    }
}

/// The codes and types of errors after which a retry may succeed.
const UNAVAILABLE: &str = "\
    server_error internal_server_error api_error timeout_error overloaded overloaded_error server_is_overloaded \
    slow_down service_unavailable service_unavailable_error provider_overloaded provider_unavailable timeout \
    UNAVAILABLE INTERNAL DEADLINE_EXCEEDED ABORTED UNKNOWN";
/// The members in which errors have their codes.
const CODE_MEMBERS: &[&str] = &["code", "type", "status", "error_type", "status_code", "reason"];
/// The members in which gateways pass on the error of their provider, as an object or as JSON:
/// <https://openrouter.ai/docs/api/reference/errors-and-debugging>, <https://github.com/BerriAI/litellm/pull/16231>.
const WRAPPED_MEMBERS: &[&str] = &[
    "error",
    "innererror",
    "metadata",
    "raw",
    "provider_specific_fields",
    "message",
    "detail",
    "details",
];
const MAX_WRAPPINGS: usize = 6;

const KIND_CODES: &[(FailureKind, &str)] = &[
    (FailureKind::QuotaUsedUp, "insufficient_quota billing_error billing_hard_limit_reached"),
    // `no_db_connection`: https://github.com/BerriAI/litellm/pull/28389
    (
        FailureKind::Unauthorized,
        "API_KEY_INVALID no_db_connection invalid_api_key authentication_error auth_error UNAUTHENTICATED",
    ),
    (FailureKind::NoAccess, "permission_error PERMISSION_DENIED permission_denied"),
    (
        FailureKind::NotFound,
        "model_not_found not_found_error DeploymentNotFound model_not_supported",
    ),
    (
        FailureKind::ContextTooLong,
        "request_too_large context_length_exceeded context_window_exceeded exceed_context_size_error \
         model_context_window_exceeded model_max_prompt_tokens_exceeded",
    ),
    // Azure, Moonshot, OpenAI, LiteLLM, OpenRouter, Alibaba, Z.ai:
    // https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter,
    // https://www.alibabacloud.com/help/en/model-studio/error-code, https://docs.z.ai/api-reference/api-code
    (
        FailureKind::Filtered,
        "content_filter ResponsibleAIPolicyViolation content_policy_violation data_inspection_failed \
         DataInspectionFailed 1301",
    ),
    // https://console.groq.com/docs/tool-use: the text of the call is in `failed_generation`
    (FailureKind::MalformedCall, "tool_use_failed MALFORMED_FUNCTION_CALL"),
];

/// Words of messages in lower case: one of these is enough.
const KIND_WORDS: &[(FailureKind, &[&str])] = &[
    (
        FailureKind::QuotaUsedUp,
        &[
            "credit balance",
            "more credits",
            "insufficient balance",
            "insufficient credit",
            "billing",
        ],
    ),
    (FailureKind::Unauthorized, &["invalid api key", "api key not valid", "incorrect api key"]),
    (
        FailureKind::Filtered,
        &[
            "content management policy",
            "content policy",
            "content filter",
            "content exists risk",
            "considered high risk",
            "inappropriate content",
            "safety system",
            "usage polic",
            "moderation",
        ],
    ),
    (FailureKind::MalformedCall, &["failed to call a function", "malformed_function_call"]),
];

/// The names of members that say `token`, `prompt` or `input` and are not about the conversation.
const OTHER_AMOUNTS: &[&str] = &[
    "max_tokens",
    "max_new_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "output tokens",
    "completion tokens",
    "prompt_cache_key",
    "context deadline",
];
/// What is too long.
const SUBJECTS: &[&str] = &[
    "context",
    "prompt",
    "input",
    "conversation",
    "messages",
    "request too large",
    "number of tokens",
    "token count",
    "token limit",
];
/// How it is measured.
const MEASURES: &[&str] = &[
    "token",
    "context",
    "prompt",
    "conversation",
    "input length",
    "input is too long",
    "request too large",
];
/// That it is too long.
const EXCESSES: &[&str] = &[
    "exceed",
    "too long",
    "too large",
    "too many",
    "longer than",
    "larger than",
    "less than",
    "maximum",
    "at most",
    "must be <=",
    "range of",
    "overflow",
    "not enough",
    "of only",
    "be reduced",
];
/// The words of a limit of tokens in a minute that no wait mends.
const TOO_LARGE_FOR_LIMIT: &[&str] = &["request too large", "must be reduced"];

impl FailureKind {
    pub(crate) fn from_status(status: u64) -> Self {
        match status {
            401 => Self::Unauthorized,
            402 => Self::QuotaUsedUp,
            403 => Self::NoAccess,
            404 | 405 | 300..=399 => Self::NotFound,
            413 => Self::ContextTooLong,
            429 => Self::RateLimited,
            408 | 409 | 500..=599 => Self::Unavailable,
            _ => Self::Other,
        }
    }

    /// Returns whether another form of the request may mend the refusal.
    pub(crate) fn may_be_mended(self) -> bool {
        matches!(self, Self::ContextTooLong | Self::Other)
    }

    /// Combines the kind by the status with the one that the body names.
    fn with(self, own: Self, is_page: bool) -> Self {
        match (self, own) {
            (Self::Unauthorized, _) => self,
            // A proxy's page says nothing about the request.
            (Self::Other, _) if is_page => Self::NotFound,
            (_, _) if is_page => self,
            (Self::NoAccess, Self::Filtered | Self::QuotaUsedUp) => own,
            (Self::NoAccess, _) => self,
            (Self::RateLimited, Self::QuotaUsedUp | Self::ContextTooLong) => own,
            (Self::RateLimited, _) => self,
            (Self::Unavailable, Self::Other | Self::Unavailable | Self::RateLimited) => self,
            (_, Self::Unavailable | Self::RateLimited | Self::Other) => self,
            (_, own) => own,
        }
    }

    /// Returns the kind by the codes of an error, or, if they are unknown, by the codes of the
    /// error that it wraps. The more specific kinds come first, because servers combine a code of
    /// one kind with a general type or status.
    pub(crate) fn from_error(error: &Value) -> Self {
        Self::from_wrapped(error, MAX_WRAPPINGS).unwrap_or(Self::Other)
    }

    fn from_wrapped(error: &Value, wrappings: usize) -> Option<Self> {
        let parsed = error.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let error = parsed.as_ref().unwrap_or(error);
        if let Value::Array(errors) = error {
            let kinds = errors.iter().take(MAX_WRAPPINGS);
            let mut kinds =
                kinds.filter_map(|error| Self::from_wrapped(error, wrappings.checked_sub(1)?));
            return kinds.find(|kind| *kind != Self::Other);
        }
        let codes = || CODE_MEMBERS.iter().filter_map(|member| error.get(member));
        let specific = codes().filter_map(Value::as_str).find_map(Self::from_name);
        let own = specific.or_else(|| codes().find_map(Self::from_code));
        if wrappings == 0 || own.is_some_and(|own| own != Self::Other) {
            return own;
        }
        let mut wrapped = WRAPPED_MEMBERS
            .iter()
            .filter_map(|member| Self::from_wrapped(error.get(member)?, wrappings - 1));
        wrapped.find(|kind| *kind != Self::Other).or(own)
    }

    fn from_name(code: &str) -> Option<Self> {
        KIND_CODES.iter().find(|(_, codes)| is_in(codes, code)).map(|(kind, _)| *kind)
    }

    fn from_code(code: &Value) -> Option<Self> {
        let text = code.as_str().unwrap_or_default();
        if let Some(status) = code.as_u64().or_else(|| text.parse().ok()) {
            return Some(match Self::from_status(status) {
                // A gateway's own status tells more than these of its provider.
                Self::NotFound | Self::NoAccess | Self::Unauthorized => Self::Other,
                kind => kind,
            });
        }
        match text {
            "rate_limit_exceeded" | "rate_limit_error" | "RESOURCE_EXHAUSTED" => {
                Some(Self::RateLimited)
            }
            code if is_in(UNAVAILABLE, code) => Some(Self::Unavailable),
            _ => None,
        }
    }

    /// Returns the kind by the text of an error, if its codes are unknown.
    pub(crate) fn or_from_message(self, message: &str) -> Self {
        let message = message.to_lowercase();
        let is_one_of = |words: &[&str]| words.iter().any(|word| message.contains(word));
        match self {
            Self::RateLimited if is_one_of(TOO_LARGE_FOR_LIMIT) => Self::ContextTooLong,
            Self::Unavailable if is_too_long(&message) => Self::ContextTooLong,
            Self::Other => {
                let said = KIND_WORDS.iter().find(|(_, words)| is_one_of(words));
                let said = said.map(|(kind, _)| *kind);
                said.or_else(|| is_too_long(&message).then_some(Self::ContextTooLong))
                    .unwrap_or(Self::Other)
            }
            kind => kind,
        }
    }
}

/// Returns whether a message in lower case says that a conversation is too long: what, by which
/// measure, and that it exceeds it.
fn is_too_long(message: &str) -> bool {
    let message = OTHER_AMOUNTS
        .iter()
        .fold(message.to_owned(), |message, amount| message.replace(amount, ""));
    [SUBJECTS, MEASURES, EXCESSES]
        .iter()
        .all(|words| words.iter().any(|word| message.contains(word)))
}

#[cfg(test)]
mod tests;
