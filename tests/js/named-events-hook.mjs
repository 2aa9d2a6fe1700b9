// The React hook and the event handler of the "AG-UI Protocol Implementation Guide", copied without their types, which
// Node 20 cannot parse.

import { useCallback, useState } from "react";

export function useAGUIStream(token) {
  const [toolCalls, setToolCalls] = useState([]);
  const [reasoning, setReasoning] = useState(null);
  const [response, setResponse] = useState("");

  const processEvent = useCallback((eventType, data) => {
    switch (eventType) {
      case "tool_call_start":
        setToolCalls((prev) => [
          ...prev,
          { id: data.toolCallId, name: data.toolCallName, args: "", status: "running" },
        ]);
        break;

      case "tool_call_args":
        setToolCalls((prev) =>
          prev.map((tc) => (tc.id === data.toolCallId ? { ...tc, args: tc.args + (data.delta || "") } : tc)),
        );
        break;

      case "tool_call_end":
        setToolCalls((prev) =>
          prev.map((tc) => (tc.id === data.toolCallId ? { ...tc, status: "complete" } : tc)),
        );
        break;

      case "reasoning_start":
        setReasoning({ id: data.messageId, content: "", isComplete: false });
        break;

      case "reasoning_message_content":
        setReasoning((prev) => (prev ? { ...prev, content: prev.content + (data.delta || "") } : null));
        break;

      case "reasoning_end":
        setReasoning((prev) => (prev ? { ...prev, isComplete: true } : null));
        break;

      case "message":
        setResponse((prev) => prev + (data.content || ""));
        break;
    }
  }, []);

  const sendMessage = useCallback(
    async (messages, threadId) => {
      const res = await fetch("/agent/chat/stream", {
        method: "POST",
        headers: {
          Authorization: `Bearer ${token}`,
          "Content-Type": "application/json",
        },
        body: JSON.stringify({ messages, thread_id: threadId }),
      });

      const reader = res.body?.getReader();
      const decoder = new TextDecoder();
      let buffer = "";

      while (reader) {
        const { done, value } = await reader.read();
        if (done) break;

        buffer += decoder.decode(value, { stream: true });

        // Parse SSE events
        const events = buffer.split("\n\n");
        buffer = events.pop() || "";

        for (const event of events) {
          const lines = event.split("\n");
          let eventType = "";
          let eventData = "";

          for (const line of lines) {
            if (line.startsWith("event: ")) eventType = line.slice(7);
            if (line.startsWith("data: ")) eventData = line.slice(6);
          }

          if (eventType && eventData) {
            processEvent(eventType, JSON.parse(eventData));
          }
        }
      }
    },
    [token, processEvent],
  );

  return { sendMessage, response, toolCalls, reasoning };
}

export class AGUIEventHandler {
  toolCalls = new Map();
  reasoning = new Map();

  handleEvent(eventType, data) {
    switch (eventType) {
      case "tool_call_start":
        this.toolCalls.set(data.toolCallId, {
          id: data.toolCallId,
          name: data.toolCallName,
          args: "",
          isComplete: false,
        });
        break;

      case "tool_call_args": {
        const tc = this.toolCalls.get(data.toolCallId);
        if (tc) tc.args += data.delta || "";
        break;
      }

      case "tool_call_end": {
        const tc = this.toolCalls.get(data.toolCallId);
        if (tc) tc.isComplete = true;
        break;
      }

      case "tool_result": {
        const tc = this.toolCalls.get(data.toolCallId);
        if (tc) tc.result = data.content;
        break;
      }

      case "reasoning_start":
        this.reasoning.set(data.messageId, { id: data.messageId, content: "", isComplete: false });
        break;

      case "reasoning_message_content": {
        const rs = this.reasoning.get(data.messageId);
        if (rs) rs.content += data.delta || "";
        break;
      }

      case "reasoning_end": {
        const rs = this.reasoning.get(data.messageId);
        if (rs) rs.isComplete = true;
        break;
      }
    }
  }
}

/** Returns the dialog that the guide shows for an interrupt. */
export function handleInterrupt(event) {
  if (event.action_requests) return { dialog: "actions", shown: event.action_requests, options: event.options };
  if (event.context?.steps) return { dialog: "plan", shown: event.context.steps, options: event.options };
  return { dialog: "feedback", shown: event.content, options: event.options };
}
