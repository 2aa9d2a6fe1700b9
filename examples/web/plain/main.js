import { HttpAgent, runHttpRequest, transformHttpEventStream } from "@ag-ui/client";

const server = "http://127.0.0.1:8080";
const threadId = (sessionStorage.thread ??= crypto.randomUUID()); // the tab's thread, also after a reload
const threadUrl = `${server}/threads/${threadId}`;

class ThreadAgent extends HttpAgent {
  connect(input) {
    this.abortController = new AbortController();
    const request = () => this.fetch(`${threadUrl}/connect`, this.requestInit(input));
    return transformHttpEventStream(runHttpRequest(request));
  }
}
const agent = new ThreadAgent({ url: `${server}/send-message`, threadId });

// A tool of the page: the agent calls it, the page adds the result, and the next run continues with it.
const parameters = { type: "object", properties: { action: { type: "string" } }, required: ["action"] };
const tools = [{ name: "confirmAction", description: "Asks the user for confirmation", parameters }];

async function run(resume) {
  await agent.runAgent({ tools, resume, forwardedProps: { onDisconnect: "continue" } }); // continues during a reload
  await answer();
}

// Answers what is open: calls of the page's tool, and interrupts. The next run continues with the answers.
async function answer() {
  const answered = new Set(agent.messages.map((message) => message.toolCallId));
  const calls = agent.messages.flatMap((message) => message.toolCalls ?? []);
  const open = calls.filter((call) => call.function.name === "confirmAction" && !answered.has(call.id));
  for (const call of open) {
    const content = confirm(call.function.arguments) ? "confirmed" : "declined";
    agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content });
  }
  const resume = agent.pendingInterrupts.map(decide);
  if (open.length + resume.length > 0) await run(resume);
}

// The schema of an interrupt names the members of the answer: a decision, or texts.
function decide({ id, toolCallId, responseSchema, ...asked }) {
  const call = agent.messages.flatMap(({ toolCalls = [] }) => toolCalls).find(({ id }) => id === toolCallId);
  const url = asked.metadata?.["agui-server.visitUrl"]; // a page to open first, such as a login
  const shown = asked.metadata?.arguments ? JSON.stringify(asked.metadata.arguments) : call?.function.arguments;
  const message = [asked.message, url ?? shown].filter(Boolean).join(" ");
  const { properties, required = [] } = responseSchema ?? {};
  if (required.length === 0 && !confirm(message)) return { interruptId: id, status: "cancelled" };
  const payload = {};
  for (const name of required) {
    const isDecision = properties[name].type === "boolean";
    payload[name] = isDecision ? confirm(message) : prompt(`${message} (${name})`);
    if (payload[name] === null) return { interruptId: id, status: "cancelled" };
  }
  return { interruptId: id, status: "resolved", payload };
}

// Replaces a user's message and all that follows: the run starts a new branch there.
function replace(index, content) {
  agent.setMessages([...agent.messages.slice(0, index), { ...agent.messages[index], content }]);
  return run();
}

const element = (name) => document.querySelector(name);
const button = (textContent, onclick) => Object.assign(document.createElement("button"), { textContent, onclick });
const showError = (error) => (element("p").textContent = error);
const { send, stop, text } = element("form").elements;

// One run at a time.
async function start(action) {
  send.disabled = true;
  showError("");
  await action().catch(showError);
  send.disabled = false;
  await showThreads();
}

function showMessages() {
  const items = agent.messages.map(({ role, content, toolCalls = [] }, index) => {
    const item = document.createElement("li");
    const calls = toolCalls.map((call) => `[${call.function.name} ${call.function.arguments}]`);
    item.append(`${role}: `, typeof content === "object" ? JSON.stringify(content) : content ?? "", ...calls);
    if (role === "user") {
      const edit = () => {
        const edited = prompt("Edit", content);
        if (edited) start(() => replace(index, edited));
      };
      item.append(" ", button("Edit", edit), button("Repeat", () => start(() => replace(index, content))));
    }
    return item;
  });
  element("ol").replaceChildren(...items);
}

// The threads that are not archived, and buttons for the tab's own.
async function showThreads() {
  const { threads } = await (await fetch(`${server}/threads`)).json();
  const open = (id) => ((sessionStorage.thread = id), location.reload());
  const headers = { "Content-Type": "application/json" };
  const change = (members) => fetch(threadUrl, { method: "PATCH", headers, body: JSON.stringify(members) });
  element("nav").replaceChildren(
    ...threads.map((thread) => button(thread.title ?? thread.threadId, () => open(thread.threadId))),
    button("New", () => open(crypto.randomUUID())),
    button("Rename", () => change({ title: prompt("Title") ?? undefined }).then(showThreads)),
    button("Archive", () => change({ archived: true }).then(showThreads)),
  );
}

let runId;
agent.subscribe({
  onMessagesChanged: showMessages,
  onRunStartedEvent: ({ event }) => void (runId = event.runId),
  onRunErrorEvent: ({ event }) => showError(`${event.code}: ${event.message}`),
});
stop.onclick = () => fetch(`${threadUrl}/runs/${runId}/cancel`, { method: "POST" });
element("form").onsubmit = (event) => {
  event.preventDefault();
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text.value });
  text.value = "";
  start(run);
};
start(() => agent.connectAgent().then(answer));
