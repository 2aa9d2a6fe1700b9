//! The guide's unit tests: content blocks, reasoning state, tool calls and their state, messages, helpers, and interrupts.

use agui_server::named_events::{
    AgentMessage, AudioBlock, ChatMessage, ChatRequest, ContentBlock, HitlDecision,
    HitlDecisionType, HitlRequest, ImageBlock, MessageBody, MessageRole, ReasoningBlock, TextBlock,
    make_event,
};
use serde_json::{Value, json};

use super::{
    client::{
        HitlResponse, HitlState, LangChainToolCall, LangChainToolResult, ReasoningState,
        ToolCallState, create_interrupt_event, extract_reasoning, from_langgraph_interrupt,
        interrupt_event,
    },
    frames,
};

fn of(block: ContentBlock) -> Value {
    serde_json::to_value(block).unwrap()
}

mod content_blocks {
    use super::*;

    #[test]
    fn text_block() {
        assert_eq!(
            of(ContentBlock::Text(TextBlock::new("Hello"))),
            json!({ "type": "text", "text": "Hello" })
        );
    }

    #[test]
    fn image_block_url() {
        let block = of(ContentBlock::Image(ImageBlock::url("https://example.com/image.jpg")));
        assert_eq!(block, json!({ "type": "image", "url": "https://example.com/image.jpg" }));
    }

    #[test]
    fn image_block_base64() {
        let block = of(ContentBlock::Image(ImageBlock::base64("AAAA", "image/jpeg")));
        assert_eq!(block, json!({ "type": "image", "data": "AAAA", "mime_type": "image/jpeg" }));
    }

    #[test]
    fn audio_block_url() {
        let block = of(ContentBlock::Audio(AudioBlock::url("https://example.com/a.mp3")));
        assert_eq!(block, json!({ "type": "audio", "url": "https://example.com/a.mp3" }));
    }

    #[test]
    fn audio_block_base64() {
        let block = of(ContentBlock::Audio(AudioBlock::base64("AAAA", "audio/wav")));
        assert_eq!(block, json!({ "type": "audio", "data": "AAAA", "mime_type": "audio/wav" }));
    }

    #[test]
    fn reasoning_block() {
        let block = of(ContentBlock::Reasoning(ReasoningBlock::new("Let me think...")));
        assert_eq!(block, json!({ "type": "reasoning", "reasoning": "Let me think..." }));
    }

    #[test]
    fn blocks_are_read_back() {
        for block in [
            ContentBlock::Text(TextBlock::new("x")),
            ContentBlock::Image(ImageBlock::base64("AAAA", "image/png")),
            ContentBlock::Reasoning(ReasoningBlock::new("y")),
        ] {
            assert_eq!(serde_json::from_value::<ContentBlock>(of(block.clone())).unwrap(), block);
        }
    }

    #[test]
    fn blocks_become_parts_of_a_message_except_reasoning() {
        let part = |block: ContentBlock| serde_json::to_value(block.to_part("x").unwrap()).unwrap();
        let image = part(ContentBlock::Image(ImageBlock::base64("AAAA", "image/png")));
        let source = json!({ "type": "data", "value": "AAAA", "mimeType": "image/png" });
        assert_eq!(image, json!({ "type": "image", "source": source }));
        assert_eq!(part(ContentBlock::Reasoning(ReasoningBlock::new("y"))), Value::Null);
    }
}

mod reasoning_state {
    use super::*;

    #[test]
    fn no_session_is_open_at_first() {
        let mut state = ReasoningState::default();
        assert!(
            !state.is_reasoning() && state.session().is_none() && state.end_reasoning().is_none()
        );
    }

    #[test]
    fn start() {
        let mut state = ReasoningState::default();
        let id = state.start_reasoning().to_owned();
        assert!(id.starts_with("reasoning-") && state.is_reasoning(), "{id}");
    }

    #[test]
    fn a_second_start_continues_the_open_session() {
        let mut state = ReasoningState::default();
        let id = state.start_reasoning().to_owned();
        assert_eq!(state.start_reasoning(), id);
    }

    #[test]
    fn deltas_are_appended() {
        let mut state = ReasoningState::default();
        state.append("lost");
        state.start_reasoning();
        state.append("Let me ");
        state.append("think");
        assert_eq!(state.session().unwrap().content, "Let me think");
    }

    #[test]
    fn end() {
        let mut state = ReasoningState::default();
        let id = state.start_reasoning().to_owned();
        assert_eq!(state.end_reasoning(), Some(&*id));
        state.append("too late");
        assert!(!state.is_reasoning() && state.session().unwrap().is_complete);
        assert_eq!(state.session().unwrap().content, "");
    }

    #[test]
    fn multiple_cycles() {
        let mut state = ReasoningState::default();
        let ids: Vec<_> = (0..3)
            .map(|_| {
                let id = state.start_reasoning().to_owned();
                state.end_reasoning();
                id
            })
            .collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    }
}

mod tool_call {
    use super::*;

    fn langchain() -> LangChainToolCall {
        LangChainToolCall::from_langchain(
            &json!({ "id": "call_123", "name": "web_search", "args": { "query": "weather" } }),
        )
        .unwrap()
    }

    #[test]
    fn from_langchain() {
        let call = langchain();
        assert_eq!(
            (call.tool_call_id.as_str(), call.tool_name.as_str()),
            ("call_123", "web_search")
        );
        assert_eq!(call.tool_input["query"], "weather");
    }

    #[test]
    fn from_langchain_without_an_id() {
        let call = LangChainToolCall::from_langchain(&json!({ "id": null, "name": "web_search" }))
            .unwrap();
        assert!(call.tool_call_id.starts_with("call_") && call.tool_input.is_empty());
    }

    #[test]
    fn from_langchain_without_a_name() {
        for none in [json!({ "id": "c", "name": "" }), json!({ "id": "c", "args": {} }), json!("x")]
        {
            assert_eq!(LangChainToolCall::from_langchain(&none), None);
        }
    }

    #[test]
    fn start_event() {
        let event = json!({ "toolCallId": "call_123", "toolCallName": "web_search" });
        assert_eq!(langchain().to_start_event(), event);
    }

    #[test]
    fn args_event() {
        let event = langchain().to_args_event(r#"{"query": "weather"}"#);
        assert_eq!(event, json!({ "toolCallId": "call_123", "delta": "{\"query\": \"weather\"}" }));
    }

    #[test]
    fn end_event() {
        assert_eq!(langchain().to_end_event(), json!({ "toolCallId": "call_123" }));
    }

    #[test]
    fn result_event() {
        let result = LangChainToolResult {
            tool_call_id: "call_123".into(),
            tool_name: "web_search".to_owned(),
            output: "Search results...".to_owned(),
        };
        let event =
            json!({ "toolCallId": "call_123", "content": "Search results...", "role": "tool" });
        assert_eq!(result.to_event(), event);
    }
}

mod tool_call_state {
    use super::*;

    #[test]
    fn start() {
        let mut state = ToolCallState::default();
        state.start_tool_call("c", "web_search");
        assert_eq!(
            state.active().map(|call| call.name.as_str()).collect::<Vec<_>>(),
            ["web_search"]
        );
    }

    #[test]
    fn deltas_of_arguments_are_appended() {
        let mut state = ToolCallState::default();
        state.start_tool_call("c", "web_search");
        state.append_args("c", r#"{"query":"#);
        assert!(state.get("c").unwrap().arguments().is_empty());
        state.append_args("c", r#""test"}"#);
        assert_eq!(Value::Object(state.get("c").unwrap().arguments()), json!({ "query": "test" }));
    }

    #[test]
    fn complete() {
        let mut state = ToolCallState::default();
        state.start_tool_call("c", "web_search");
        assert!(state.complete_tool_call("c").unwrap().is_complete);
        assert_eq!((state.active().count(), state.calls().count()), (0, 1));
    }

    #[test]
    fn result() {
        let mut state = ToolCallState::default();
        state.start_tool_call("c", "web_search");
        state.set_result("c", "sunny");
        assert_eq!(state.get("c").unwrap().result.as_deref(), Some("sunny"));
    }

    #[test]
    fn parallel_calls_are_kept_apart() {
        let mut state = ToolCallState::default();
        for (id, name) in [("a", "one"), ("b", "two")] {
            state.start_tool_call(id, name);
        }
        state.append_args("b", "{}");
        state.append_args("a", "[");
        assert_eq!(
            (state.get("a").unwrap().args.as_str(), state.get("b").unwrap().args.as_str()),
            ("[", "{}")
        );
    }

    #[test]
    fn unknown_calls_are_ignored() {
        let mut state = ToolCallState::default();
        state.append_args("x", "{}");
        state.set_result("x", "y");
        assert!(state.complete_tool_call("x").is_none() && state.calls().count() == 0);
        state.start_tool_call("c", "web_search");
        state.clear();
        assert!(state.get("c").is_none());
    }
}

mod messages {
    use super::*;

    #[test]
    fn agent_message_of_text() {
        let message = AgentMessage::user("Hello!").to_langchain_format();
        assert_eq!(message, json!({ "role": "user", "content": "Hello!" }));
    }

    #[test]
    fn agent_message_of_blocks() {
        let blocks = vec![
            ContentBlock::Text(TextBlock::new("What's in this image?")),
            ContentBlock::Image(ImageBlock::url("https://example.com/photo.jpg")),
        ];
        let message =
            AgentMessage::new(MessageRole::User, MessageBody::Blocks(blocks)).to_langchain_format();
        let content = json!([
            { "type": "text", "text": "What's in this image?" },
            { "type": "image", "url": "https://example.com/photo.jpg" },
        ]);
        assert_eq!(message, json!({ "role": "user", "content": content }));
    }

    #[test]
    fn chat_message() {
        let message = ChatMessage::new(MessageRole::Assistant, MessageBody::Text("Hi".to_owned()));
        assert_eq!(message.to_langchain_format(), json!({ "role": "assistant", "content": "Hi" }));
    }

    #[test]
    fn a_request_becomes_a_run() {
        let request = ChatRequest::read(&json!({
            "messages": [{ "role": "user", "content": "Solve this" }],
            "enable_deep_thinking": true,
            "thread_id": "t",
        }));
        let input = request.unwrap().to_input("t".into(), false).unwrap();
        assert_eq!(input.last_user_text().as_deref(), Some("Solve this"));
        assert_eq!(input.forwarded_props, Some(json!({ "enableDeepThinking": true })));
    }
}

mod helpers {
    use super::*;

    #[test]
    fn make_ag_ui_event() {
        let frame = make_event("tool_call_end", &json!({ "toolCallId": "c" }));
        assert_eq!(frame, "event: tool_call_end\ndata: {\"toolCallId\":\"c\"}\n\n");
    }

    #[test]
    fn extract_reasoning_from_content_blocks() {
        let blocks = [
            json!({ "type": "reasoning", "reasoning": "First, " }),
            json!({ "type": "text", "text": "no" }),
            json!({ "type": "reasoning", "reasoning": "then" }),
        ];
        assert_eq!(extract_reasoning(&blocks).as_deref(), Some("First, then"));
        assert_eq!(extract_reasoning(&blocks[1..2]), None);
    }

    /// The guide's `test_model_serialization`.
    #[test]
    fn test_model_serialization() {
        let request = json!({
            "messages": [{ "role": "user", "content": { "decisions": [
                { "actionId": "action-1", "type": "approve" },
                { "actionId": "action-2", "type": "edit", "args": { "limit": 100 } },
                { "actionId": "action-3", "type": "reject", "reason": "Too dangerous" },
            ] } }],
            "thread_id": "thread-xyz",
        });
        let read = ChatRequest::read(&request).unwrap();
        assert_eq!(read.messages[0].to_langchain_format(), request["messages"][0]);
        let event = json!({
            "id": "interrupt-abc123",
            "thread_id": "thread-xyz",
            "content": "Review and approve these actions before execution.",
            "finish_reason": "interrupt",
            "options": [
                { "label": "Approve", "value": "approve" },
                { "label": "Edit", "value": "edit" },
                { "label": "Reject", "value": "reject" },
            ],
            "action_requests": [{
                "actionId": "action-1",
                "name": "execute_sql",
                "arguments": { "query": "DELETE FROM users WHERE status = 'inactive'" },
                "description": "Delete inactive users from database",
            }],
            "review_configs": [
                { "action_name": "execute_sql", "allowedDecisions": ["approve", "edit", "reject"] },
            ],
        });
        let request: HitlRequest = serde_json::from_value(event.clone()).unwrap();
        assert_eq!(serde_json::to_value(&request).unwrap(), event);
    }
}

mod hitl {
    use super::*;

    #[test]
    fn from_langgraph_interrupt() {
        let request =
            super::from_langgraph_interrupt(&json!("Review the planned steps"), "thread-123");
        assert!(request.id.starts_with("interrupt-"));
        let (name, event) = frames(&interrupt_event(&request, "thread-123")).remove(0);
        assert_eq!((name.as_str(), &event["thread_id"]), ("interrupt", &json!("thread-123")));
        assert_eq!(
            (&event["content"], &event["options"][1]["value"]),
            (&json!("Review the planned steps"), &json!("feedback"))
        );
    }

    #[test]
    fn from_langgraph_interrupt_with_steps_or_actions() {
        let steps = json!({ "content": "Look", "steps": [{ "description": "Search", "status": "enabled" }] });
        let request = super::from_langgraph_interrupt(&steps, "t");
        assert_eq!(request.context.unwrap().steps.unwrap()[0].description, "Search");
        let actions =
            json!({ "action_requests": [{ "actionId": "a", "name": "sql", "arguments": {} }] });
        let request = super::from_langgraph_interrupt(&actions, "t");
        assert_eq!((request.action_requests[0].name.as_str(), request.options.len()), ("sql", 3));
    }

    #[test]
    fn create_hitl_interrupt_event() {
        let (name, event) = frames(&create_interrupt_event("Well?", "t")).remove(0);
        assert_eq!((name.as_str(), &event["finish_reason"]), ("interrupt", &json!("interrupt")));
    }

    #[test]
    fn a_response_becomes_the_resume_value() {
        let feedback = HitlResponse::feedback("i", "Please add more detail to step 2");
        assert_eq!(feedback.to_langgraph_resume(), "Please add more detail to step 2");
        let decision = HitlDecision {
            action_id: "action-1".to_owned(),
            kind: HitlDecisionType::Reject,
            args: None,
            reason: Some("no".to_owned()),
        };
        let resume = HitlResponse::decisions("i", vec![decision]).to_langgraph_resume();
        assert_eq!(
            resume,
            json!({ "decisions": [{ "actionId": "action-1", "type": "reject", "reason": "no" }] })
        );
    }

    #[test]
    fn state() {
        let mut state = HitlState::default();
        let request = HitlRequest::new("i", "Well?");
        state.interrupt(request.clone());
        assert_eq!(state.respond(&HitlResponse::feedback("other", "x")), None);
        assert_eq!(state.pending(), Some(&request));
        assert_eq!(state.respond(&HitlResponse::feedback("i", "x")), Some(json!("x")));
        assert_eq!((state.pending(), state.answered()), (None, 1));
    }
}
