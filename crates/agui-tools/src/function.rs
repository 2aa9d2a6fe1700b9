//! Tools made of a closure.

use std::{fmt, future::Future, sync::Arc};

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::{
    approval::ApprovalRule,
    context::ToolContext,
    error::ToolError,
    question::schema_of,
    tool::{Approval, Repeat, Tool, ToolSpec},
};
use agui_protocol::{JsonObject, MessageContent};

/// Makes a tool of a closure. It returns an [`IntoToolResult`], such as a `Result` with a [`ToolError`], for which `?`
/// converts any error.
///
/// The schema and the decoding come from the arguments' type; the model reads the doc comments of its fields. A tool
/// without arguments takes a struct without fields.
///
/// ```
/// use agui_tools::{Tool, ToolContext, ToolError, tool_fn};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Lookup {
///     /// The number on the invoice.
///     order: u32,
/// }
///
/// let find_order = tool_fn("find_order", "Finds an order by number.", |args: Lookup, cx| async move {
///     cx.report_progress("Looking into the archive", 0.5).await?;
///     if args.order > 1000 {
///         return Err(ToolError::new("order numbers end at 1000"));
///     }
///     Ok(json!({ "order": args.order, "status": "sent" }))
/// });
///
/// assert_eq!(find_order.spec().parameters["properties"]["order"]["description"], "The number on the invoice.");
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let arguments = serde_json::from_value(json!({ "order": 7 })).unwrap();
/// let result = find_order.call(arguments, &ToolContext::for_test("find_order")).await.unwrap();
/// assert_eq!(result.text(), r#"{"order":7,"status":"sent"}"#);
/// # });
/// ```
pub fn tool_fn<A, F, Fut, R>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> FnTool
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: IntoToolResult,
{
    FnTool::from_spec(ToolSpec::new(name, description, schema_of::<A>()), move |arguments, cx| {
        let called = decode(arguments).map(|arguments| function(arguments, cx));
        async move { called?.await.into_tool_result() }
    })
}

type ToolFuture = BoxFuture<'static, Result<MessageContent, ToolError>>;

/// A tool made of a closure by [`tool_fn`].
#[must_use]
pub struct FnTool {
    spec: ToolSpec,
    approval: ApprovalRule,
    repeat: Repeat,
    /// The MCP server that carries the calls out, and the name under which metrics count them.
    server: Option<(Arc<str>, String)>,
    call: Box<dyn Fn(JsonObject, ToolContext) -> ToolFuture + Send + Sync>,
}

impl FnTool {
    /// Makes a tool from its description and an async function. The function's arguments fit the
    /// schema.
    #[doc(hidden)]
    pub fn from_spec<F, Fut, R>(spec: ToolSpec, function: F) -> Self
    where
        F: Fn(JsonObject, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolResult,
    {
        let call = move |arguments: JsonObject, cx: ToolContext| -> ToolFuture {
            let future = function(arguments, cx);
            Box::pin(async move { future.await.into_tool_result() })
        };
        let (approval, repeat) = (ApprovalRule::Never, Repeat::Never);
        Self { spec, approval, repeat, server: None, call: Box::new(call) }
    }

    /// Sets the rule by which a person has to agree to a call; never by default.
    pub fn needs_approval(mut self, rule: ApprovalRule) -> Self {
        self.approval = rule;
        self
    }

    /// Sets whether a call may run again after its server was lost; never by default.
    pub fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// Sets the MCP server that carries the calls out, under which metrics count them.
    #[doc(hidden)]
    pub fn with_server(mut self, server: &Arc<str>) -> Self {
        self.server = Some((server.clone(), format!("mcp:{server}")));
        self
    }
}

#[async_trait]
impl Tool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn metric_name(&self) -> &str {
        self.server.as_ref().map_or(&self.spec.name, |(_, metric_name)| metric_name)
    }

    fn server(&self) -> Option<&str> {
        self.server.as_ref().map(|(server, _)| &**server)
    }

    fn approval(&self, arguments: &JsonObject) -> Approval {
        self.approval.decide(arguments)
    }

    fn repeat(&self, _: &JsonObject) -> Repeat {
        self.repeat
    }

    async fn call(
        &self,
        arguments: JsonObject,
        cx: &ToolContext,
    ) -> Result<MessageContent, ToolError> {
        (self.call)(arguments, cx.clone()).await
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool")
            .field("spec", &self.spec)
            .field("approval", &self.approval)
            .finish_non_exhaustive()
    }
}

/// A value that the closure of [`tool_fn`] can return.
pub trait IntoToolResult {
    /// Returns the result for the model.
    ///
    /// # Errors
    /// The closure's own error.
    fn into_tool_result(self) -> Result<MessageContent, ToolError>;
}

impl IntoToolResult for MessageContent {
    fn into_tool_result(self) -> Result<MessageContent, ToolError> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> Result<MessageContent, ToolError> {
        Ok(self.into())
    }
}

impl IntoToolResult for &'static str {
    fn into_tool_result(self) -> Result<MessageContent, ToolError> {
        Ok(self.into())
    }
}

/// A string as it is, other values as JSON.
impl IntoToolResult for Value {
    fn into_tool_result(self) -> Result<MessageContent, ToolError> {
        Ok(match self {
            Self::String(text) => text.into(),
            value => value.to_string().into(),
        })
    }
}

/// The model is told `done`.
impl IntoToolResult for () {
    fn into_tool_result(self) -> Result<MessageContent, ToolError> {
        Ok("done".into())
    }
}

// The error has one type, so that `?` and `Ok(…)` in a closure need no annotation.
impl<T: IntoToolResult> IntoToolResult for Result<T, ToolError> {
    fn into_tool_result(self) -> Result<MessageContent, ToolError> {
        self?.into_tool_result()
    }
}

/// The error is for the model: the JSON Pointer of the argument that does not fit, and why.
fn decode<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, ToolError> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let segments = error.path().iter().filter_map(|segment| match segment {
            Segment::Seq { index } => Some(format!("/{index}")),
            Segment::Map { key } => Some(format!("/{key}")),
            Segment::Enum { .. } | Segment::Unknown => None,
        });
        let pointer: String = segments.collect();
        let place = if pointer.is_empty() { "(root)" } else { &pointer };
        ToolError::new(format!("The arguments cannot be used:\n- {place}: {}", error.inner()))
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;
    use crate::Validator;

    #[derive(Deserialize, JsonSchema)]
    struct Order {
        lines: Vec<Line>,
    }

    #[derive(Deserialize, JsonSchema)]
    struct Line {
        /// The number of items.
        count: u8,
    }

    async fn call(tool: &FnTool, arguments: Value) -> Result<String, ToolError> {
        let arguments = arguments.as_object().unwrap().clone();
        tool.call(arguments, &ToolContext::for_test("t"))
            .await
            .map(|content| content.text().into_owned())
    }

    #[tokio::test]
    async fn a_closure_returns_text_json_content_or_a_result_of_them() {
        let empty = json!({ "lines": [] });
        let told =
            |tool: FnTool| async move { call(&tool, json!({ "lines": [{ "count": 2 }] })).await };
        assert_eq!(told(tool_fn("t", "", |_: Order, _| async { "text" })).await.unwrap(), "text");
        assert_eq!(told(tool_fn("t", "", |_: Order, _| async {})).await.unwrap(), "done");
        assert_eq!(
            told(tool_fn("t", "", |_: Order, _| async { json!([1]) })).await.unwrap(),
            "[1]"
        );
        assert_eq!(
            told(tool_fn("t", "", |_: Order, _| async { MessageContent::from("c") }))
                .await
                .unwrap(),
            "c"
        );
        let number = tool_fn("t", "", |order: Order, cx| async move {
            let first = order.lines.first().ok_or_else(|| ToolError::new("there are no lines"))?;
            let number: u32 =
                format!("{}{}", first.count, cx.thread_id()).trim_end_matches('t').parse()?;
            Ok(format!("{number}"))
        });
        assert_eq!(call(&number, empty).await.unwrap_err().message(), "there are no lines");
        assert_eq!(told(number).await.unwrap(), "2");
    }

    #[tokio::test]
    async fn an_error_by_question_mark_tells_the_model_nothing_of_its_text() {
        let tool =
            tool_fn("t", "", |_: Order, _| async { Ok("secret".parse::<u8>()?.to_string()) });
        let error = call(&tool, json!({ "lines": [] })).await.unwrap_err();
        assert_eq!(error.message(), "the tool failed");
        assert_eq!(format!("{error:?}"), "the tool failed: invalid digit found in string");
    }

    #[tokio::test]
    async fn arguments_that_cannot_be_decoded_are_named() {
        let tool = tool_fn("t", "", |_: Order, _| async { "never" });
        let error =
            call(&tool, json!({ "lines": [{ "count": 1 }, { "count": 300 }] })).await.unwrap_err();
        let expected = "The arguments cannot be used:\n- /lines/1/count: invalid value: integer `300`, expected u8";
        assert_eq!(error.message(), expected);
        assert!(
            call(&tool, json!({}))
                .await
                .unwrap_err()
                .message()
                .contains("(root): missing field `lines`")
        );
    }

    #[test]
    fn the_schema_has_no_references_and_can_be_used() {
        let tool =
            tool_fn("t", "", |_: Order, _| async { "never" }).needs_approval(ApprovalRule::Always);
        let parameters = &tool.spec().parameters;
        assert_eq!(
            parameters["properties"]["lines"]["items"]["properties"]["count"]["description"],
            "The number of items."
        );
        assert!(
            parameters.get("$schema").is_none() && parameters.get("$defs").is_none(),
            "{parameters}"
        );
        Validator::new(parameters).unwrap();
        assert_eq!(tool.approval(&JsonObject::new()), Approval::Needed);
    }
}
