// A page whose connection breaks during a run comes back by itself: the server, or its next start, continues the run.
import { useCopilotKit } from "@copilotkit/react-core/v2";
import { useEffect, useState } from "react";

import { headers, SERVER } from "./server";

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const isAnswering = () => fetch(`${SERVER}/copilotkit/info`, { headers }).then(({ ok }) => ok, () => false);

/** Returns whether the server is away. Calls `onRejoin` when it answers again. */
export function useRejoin(agent, onRejoin) {
  const { copilotkit } = useCopilotKit();
  const [isAway, setAway] = useState(false);
  useEffect(() => {
    let [isLeft, isWaiting] = [false, false];
    async function rejoin() {
      if (isWaiting) return;
      const shown = [...agent.messages];
      isWaiting = true;
      setAway(true);
      for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, MAX_PAUSE_MS)) {
        await pause(ms);
        if (isLeft) return;
        if (await isAnswering()) break;
      }
      isWaiting = false;
      setAway(false);
      onRejoin();
      // Shows what is stored, then the rest of the run.
      await copilotkit.connectAgent({ agent });
      // A message that did not reach the server is sent again.
      const at = shown.findLastIndex(({ role }) => role === "user");
      const hasArrived = at < 0 || agent.messages.some(({ id }) => id === shown[at].id);
      if (hasArrived || isLeft || isWaiting) return;
      agent.setMessages(shown.slice(0, at + 1));
      await copilotkit.runAgent({ agent });
    }
    // A refused request has a status, a broken connection has none.
    const onRunFailed = ({ error }) => void (error.name !== "AbortError" && error.status === undefined && setTimeout(rejoin));
    const { unsubscribe } = agent.subscribe({ onRunFailed });
    return () => ((isLeft = true), unsubscribe());
  }, [agent, copilotkit]);
  return isAway;
}
