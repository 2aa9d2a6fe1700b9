//! The codes of failed runs and model calls that this server makes. Agents and remote endpoints can send others.

use std::borrow::Cow;

use crate::named_enum;

named_enum! {
    /// The code of a failed run or model call, as clients see it in `RUN_ERROR`. To add one, add a line here, use it where
    /// the run fails, and explain it in `docs/protocol.md` or `docs/configuration.md`; a test compares the lists.
    #[allow(missing_docs, reason = "these documents explain each code")]
    RunErrorCode {
        AgentError = "agent_error",
        AgentPanic = "agent_panic",
        AgentTimeout = "agent_timeout",
        CallerValueMissing = "caller_value_missing",
        ContextTooLong = "context_too_long",
        ContradictoryResume = "contradictory_resume",
        FilesUnavailable = "files_unavailable",
        InterruptExpired = "interrupt_expired",
        InvalidReplay = "invalid_replay",
        InvalidResponseSchema = "invalid_response_schema",
        InvalidResumePayload = "invalid_resume_payload",
        LeaseLost = "lease_lost",
        MaxSteps = "max_steps",
        ModelCallMalformed = "model_call_malformed",
        ModelEmpty = "model_empty",
        ModelFailed = "model_failed",
        ModelFiltered = "model_filtered",
        ModelInterrupted = "model_interrupted",
        ModelNotAllowed = "model_not_allowed",
        ModelProtocol = "model_protocol",
        ModelRateLimited = "model_rate_limited",
        ModelRefused = "model_refused",
        ModelRejected = "model_rejected",
        ModelTimeout = "model_timeout",
        ModelTruncated = "model_truncated",
        ModelUnauthorized = "model_unauthorized",
        ModelUnavailable = "model_unavailable",
        ModelUnreachable = "model_unreachable",
        NoRecordedExchange = "no_recorded_exchange",
        NoRecording = "no_recording",
        ProtocolViolation = "protocol_violation",
        RemoteError = "remote_error",
        RemoteFailed = "remote_failed",
        RemoteIncomplete = "remote_incomplete",
        RemoteProtocol = "remote_protocol",
        RemoteRejected = "remote_rejected",
        RemoteTimeout = "remote_timeout",
        RemoteUnreachable = "remote_unreachable",
        ReplayFault = "replay_fault",
        ResponseInvalid = "response_invalid",
        RunTooLong = "run_too_long",
        ServerLost = "server_lost",
        ServerShutdown = "server_shutdown",
        StoreUnavailable = "store_unavailable",
        ThreadDeleted = "thread_deleted",
    }
}

impl RunErrorCode {
    /// Returns the code of this name. `None` if it is not one of this server's.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

impl From<RunErrorCode> for Cow<'static, str> {
    fn from(code: RunErrorCode) -> Self {
        code.as_str().into()
    }
}
