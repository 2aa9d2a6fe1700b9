// The stored parts of a thread beside its messages: branches, and the tokens of runs.
import { useCopilotKit } from "@copilotkit/react-core/v2";
import { useEffect, useState } from "react";

import { call, threadPath } from "./server";

/**
 * Returns `alternatives`, by message the messages in its place; `runs`, the last ones with their tokens; `runOf`, by message
 * the run that ended with it; and `switchTo(id)`, which opens the branch of a message.
 */
export function useThread(agent, threadId, setProblem) {
  const { copilotkit } = useCopilotKit();
  const [stored, setStored] = useState({ alternatives: {}, runs: [] });
  const [runOf, setRunOf] = useState(() => JSON.parse(sessionStorage[`runs.${threadId}`] ?? "{}"));
  useEffect(() => void (sessionStorage[`runs.${threadId}`] = JSON.stringify(runOf)), [threadId, runOf]);

  useEffect(() => {
    // The library reads no thread while a question waits for an answer. The question may be answered in another tab.
    const connect = agent.connectAgent;
    let isConnecting = false;
    agent.connectAgent = async (...all) => {
      agent.pendingInterrupts = [];
      isConnecting = true;
      try {
        return await connect.apply(agent, all);
      } finally {
        isConnecting = false;
      }
    };
    const connectAgain = () => !agent.isRunning && copilotkit.connectAgent({ agent });
    // A new thread is not stored before its first run, and may have a message by then.
    const read = () => agent.messages.some(({ role }) => role !== "user") && call("GET", threadPath(threadId)).then(setStored, () => {});
    const { unsubscribe } = agent.subscribe({
      onRunInitialized: () => void (isConnecting || setProblem()),
      onRunFinishedEvent({ event, messages }) {
        const last = messages.findLast(({ role }) => role !== "tool");
        if (last) setRunOf((before) => ({ [last.id]: event.runId, ...before }));
      },
      onRunErrorEvent({ event, input }) {
        setProblem(event.message);
        // The server has refused an answer. The questions are still open there.
        if (input.resume) setTimeout(connectAgain, 100);
      },
      onRunFinalized: () => void read(),
    });
    return () => ((agent.connectAgent = connect), unsubscribe());
  }, [agent, copilotkit, threadId, setProblem]);

  const switchTo = async (head) => {
    try {
      await call("PATCH", threadPath(threadId), { head });
      agent.setMessages([]);
      await copilotkit.connectAgent({ agent });
    } catch (error) {
      setProblem(error.message);
    }
  };
  return { ...stored, runOf, switchTo };
}
