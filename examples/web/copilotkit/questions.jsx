// Questions that end a run: decisions about calls, and forms by their schema. The next run continues with the answers to all.
import { useInterrupt } from "@copilotkit/react-core/v2";

import { Question } from "../question";

/** `problem`: why the last answer was refused. The question that it names shows it. */
export function useQuestions(agent, problem) {
  const argumentsOf = (toolCallId) => {
    const calls = agent.messages.flatMap(({ toolCalls = [] }) => toolCalls);
    return calls.find((call) => call.id === toolCallId)?.function.arguments;
  };
  useInterrupt({
    render: ({ interrupts, resolve, cancel }) =>
      interrupts.map(({ id, message, toolCallId, responseSchema, metadata }) => (
        <Question
          key={id}
          id={id}
          message={message}
          args={metadata?.arguments ? JSON.stringify(metadata.arguments) : argumentsOf(toolCallId)}
          schema={responseSchema}
          url={metadata?.["agui-server.visitUrl"]}
          problem={problem}
          resolve={(payload) => resolve(payload, id)}
          cancel={() => cancel(id)}
        />
      )),
  });
}
