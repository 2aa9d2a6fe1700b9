// The state of the page and everything that a user can do. Components read it and call it.

import { clearAddress, leaveThread, readAddress, writeAddress } from "./address.js";
import { ThreadAgent } from "./agent.js";
import { ApiError, BASE, call, curlCommand, readKey, request, threadPath, writeKey } from "./api.js";
import { download } from "./download.js";
import { PageTools } from "./page-tools.js";
import { RecordedAgent } from "./recorded-agent.js";
import { Recorder } from "./recorder.js";
import { readRecording, recordedRun, recordingName, writeRecording } from "./recording.js";
import { clearTab, readTab, writeTab } from "./storage.js";
import { ThreadList } from "./thread-list.js";
import { Uploads } from "./uploads.js";

const FRAME_MS = 16;
/** The most messages whose branches are read, the largest page of the server. */
const MESSAGES_PER_PAGE = 200;

/** The custom event with which an agent offers messages to send next. */
const STARTERS = "agui-server.starters";
const textsOf = (value) => (Array.isArray(value) ? value.filter((text) => typeof text === "string") : []);

const DECISIONS = { yes: "approved", no: "rejected", none: "abandoned" };

/** The code of a run whose answer does not fit the schema of the question. */
const REFUSED = "invalid_resume_payload";

/** Returns which field of which question a refusal is about: "the reply to the interrupt "id" …: payload/name: text". */
function refusedField(message) {
  const [, id, name, text] = /^the reply to the interrupt "(.*?)" .*?: payload\/([^/:]+)[^:]*: (.*)/s.exec(message) ?? [];
  return { id, name: name?.replaceAll("~1", "/").replaceAll("~0", "~"), text };
}

/** Returns an answer as { decision }, which names a text of the page, or { text }. */
function shownAnswer(payload) {
  if (payload === undefined) return { decision: DECISIONS.none };
  if (typeof payload?.approved === "boolean") return { decision: payload.approved ? DECISIONS.yes : DECISIONS.no };
  if (typeof payload !== "object" || payload === null) return { text: String(payload) };
  return { text: Object.entries(payload).map(([name, value]) => `${name}: ${JSON.stringify(value)}`).join(", ") };
}

const newId = () => crypto.randomUUID();

export class Session {
  /** `loading`, `key` (a key is needed), `failed` or `ready`. */
  phase = "loading";
  /** Why the key was refused. */
  keyProblem;
  /** The last failure: { code, message, isAtField }. `isAtField`: a question's field shows the message. */
  error;
  agents = [];
  /** The chosen agent, and what it can do. */
  agentName;
  capabilities;
  threads = new ThreadList({ onChange: () => this.changed(), onError: (error) => this.#show(error) });
  tools = new PageTools();
  /** The files of the next message. Files need threads that are stored. */
  uploads = new Uploads({ onChange: () => this.changed() });
  /** The members that runs send beside the conversation, in this tab: { forwardedProps, context, headers }. */
  extras = readTab("extras");

  /** The client with the messages of the open thread, and the recorder of its events. */
  agent;
  recorder;
  /** The stored open thread; absent for a new one. */
  thread;
  /** By message: the ids of the messages in its place, one for each branch. */
  alternatives = {};
  /** The opinions of messages, by their ids. */
  feedback = {};
  /** The recording that is shown in place of a thread. */
  recording;
  /** The item that is marked in the chat and in the events, by its id. */
  marked;
  /** The answers to open interrupts, until all have one. */
  answers = new Map();
  /** By question: the answer that the server has refused, and its reason at a field: { payload, refusal: { name, text } }. */
  refused = new Map();
  /**
   * The questions that were answered in this tab: { after, message, decision, text }. `after` is the
   * message before the question. */
  answered = [];
  /** By message: the run of which it is the last one, for the runs that this tab has seen. */
  lastOfRun = {};
  /** The messages that the last run has offered to send next. */
  offered = [];
  /** Set if the last run of this page failed and can be started again, with the answers that it had. */
  canRetry = false;
  #resume;
  /** The run that was started or followed last. */
  runId;
  isRunning = false;
  wasStopped = false;
  /** The status for screen readers: `running`, `finished`, `asking` or `failed`. */
  announcement;

  #listeners = new Set();
  #timer;
  /** Settled when the capabilities of the agent are known, or cannot be read. */
  #capabilitiesRead;
  /** The number of times that the agent was running. */
  #turns = 0;

  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Shows what has changed, at most once in a frame. */
  changed() {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      for (const listener of this.#listeners) listener();
    }, FRAME_MS);
  }

  /** Runs an action and shows its error. */
  async attempt(action) {
    this.error = undefined;
    this.changed();
    try {
      return await action();
    } catch (error) {
      this.#show(error);
    } finally {
      this.changed();
    }
  }

  #show(error) {
    if (error instanceof ApiError && error.status === 401) {
      this.phase = "key";
      this.keyProblem = readKey() ? error.message : undefined;
    } else if (error?.name !== "AbortError") {
      this.error = { code: error.code, message: error.message ?? String(error) };
    }
  }

  // --- Agents and keys ---------------------------------------------------------------------------

  async start() {
    window.addEventListener("hashchange", () => this.phase === "ready" && this.#followAddress());
    document.addEventListener("visibilitychange", () => this.#followThreads());
    await this.load();
  }

  async load() {
    await this.attempt(async () => {
      try {
        const { agents, transcribe } = await call("GET", "/agents");
        Object.assign(this, { agents, transcribePath: transcribe });
      } catch (error) {
        this.phase = "failed";
        throw error;
      }
      this.agentName = (this.agents.find((agent) => agent.default) ?? this.agents[0])?.name;
      await this.threads.read();
      // A field for messages that is shown earlier would have no thread to send them to.
      this.phase = "ready";
      this.#followThreads();
      await this.#followAddress();
    });
  }

  async useKey(key) {
    writeKey(key);
    await this.load();
  }

  /** Nothing that was read with the key stays on the page. */
  forgetKey() {
    clearTab();
    clearAddress();
    location.reload();
  }

  async chooseAgent(name) {
    this.agentName = name;
    this.agent = this.#createAgent(this.agent?.threadId ?? newId(), this.agent);
    this.capabilities = undefined;
    this.changed();
    await this.readCapabilities();
  }

  readCapabilities() {
    const name = this.agentName;
    this.#capabilitiesRead = this.attempt(async () => {
      const capabilities = await call("GET", `/agents/${encodeURIComponent(name)}/capabilities`);
      if (name === this.agentName) this.capabilities = capabilities;
    });
    return this.#capabilitiesRead;
  }

  // --- Threads -----------------------------------------------------------------------------------

  /** Keeps the list current while the page is visible: all tabs of a browser share six connections to a server. */
  #followThreads() {
    if (this.phase === "ready" && !document.hidden) this.threads.follow();
    else this.threads.unfollow();
  }

  async #followAddress() {
    const [agentName, threadId] = readAddress();
    if (!threadId) return this.newThread();
    if (threadId === this.agent?.threadId && agentName === this.agentName && !this.recording) return;
    await this.openThread(threadId, agentName);
  }

  /** The back button returns to the thread before. */
  startThread() {
    leaveThread();
    return this.newThread();
  }

  async newThread() {
    this.#reset(newId());
    clearAddress();
    this.changed();
    await this.readCapabilities();
  }

  async openThread(threadId, agentName) {
    if (this.agents.some((agent) => agent.name === agentName)) this.agentName = agentName;
    this.#reset(threadId);
    writeAddress(this.agentName, this.agent.threadId);
    const read = this.readCapabilities();
    await this.#connect();
    await read;
  }

  #reset(threadId, recording) {
    this.agent?.abortRun();
    this.recorder = new Recorder((event) => this.#recorded(event));
    this.recording = recording;
    this.agent = recording ? this.#observed(new RecordedAgent(recording, this.recorder)) : this.#createAgent(threadId);
    this.thread = undefined;
    this.alternatives = {};
    this.feedback = {};
    this.answers = new Map();
    this.answered = readTab(`answers.${threadId}`) ?? [];
    this.lastOfRun = readTab(`runs.${threadId}`) ?? {};
    this.offered = [];
    this.canRetry = false;
    this.marked = undefined;
    this.isRunning = false;
    this.error = undefined;
    this.announcement = undefined;
    this.uploads.clear();
  }

  #createAgent(threadId, before) {
    const agent = new ThreadAgent(this.agentName, threadId, this.recorder);
    if (before) {
      agent.setMessages(before.messages);
      agent.setState(before.state);
    }
    return this.#observed(agent);
  }

  #observed(agent) {
    agent.subscribe({
      onMessagesChanged: () => this.changed(),
      onStateChanged: () => this.changed(),
      onRunErrorEvent: ({ event }) => {
        this.error = { code: event.code, message: event.message };
        if (event.code === REFUSED) this.error.isAtField = this.#askAgain(event.message);
      },
    });
    return agent;
  }

  #recorded(event) {
    if (event.type === "RUN_STARTED") {
      this.runId = event.runId;
      this.offered = [];
    }
    if (event.type === "CUSTOM" && event.name === STARTERS) this.offered = textsOf(event.value);
    this.changed();
  }

  /** Restores the messages of the thread, and follows its run if one is running. */
  async #connect() {
    const { agent } = this;
    await this.#during(agent, async () => {
      await this.#readThread();
      if (!this.thread) return;
      this.runId = this.thread.activeRunId;
      await this.#seen(agent, () => agent.connectAgent());
    });
  }

  async #readThread() {
    const { agent } = this;
    if (this.recording) return;
    try {
      const path = threadPath(agent.threadId);
      const [thread, page] = await Promise.all([
        call("GET", path),
        call("GET", `${path}/messages?limit=${MESSAGES_PER_PAGE}`),
      ]);
      if (agent.threadId !== this.agent.threadId) return;
      this.thread = thread;
      this.alternatives = page.alternatives;
      this.feedback = page.feedback ?? {};
    } catch (error) {
      if (error.status !== 404) throw error;
    }
    this.changed();
  }

  async editThread(threadId, change) {
    await this.attempt(async () => {
      await call("PATCH", threadPath(threadId), change);
      if (threadId === this.agent.threadId) await this.#readThread();
    });
    await this.threads.read();
  }

  async deleteThread(threadId) {
    await this.attempt(async () => {
      await call("DELETE", threadPath(threadId));
      if (threadId === this.agent.threadId) await this.newThread();
    });
    await this.threads.read();
  }

  /** Copies the thread, up to a message if one is given, and opens the copy, with another state if one is given. */
  async fork(messageId, state) {
    await this.attempt(async () => {
      const { threadId } = await call("POST", `${threadPath(this.agent.threadId)}/fork`, { messageId });
      await this.openThread(threadId, this.agentName);
      if (state !== undefined) this.setState(state);
    });
    await this.threads.read();
  }

  /** Stores an opinion of a message: 1, -1, or undefined for none. */
  async rate(messageId, score) {
    const { comment } = this.feedback[messageId] ?? {};
    await this.attempt(async () => {
      await call("POST", `${threadPath(this.agent.threadId)}/messages/${encodeURIComponent(messageId)}/feedback`, { score, comment });
      await this.#readThread();
    });
  }

  /** Sets the state that the next run begins with. */
  setState(state) {
    this.agent.setState(state);
    this.recorder.state = state;
    this.changed();
  }

  exportThread(threadId) {
    return this.attempt(async () => {
      const thread = await call("GET", `${threadPath(threadId)}/export`);
      download("thread.json", new Blob([JSON.stringify(thread, undefined, 2)], { type: "application/json" }));
    });
  }

  /** A thread whose id is taken is imported under a new one. */
  async importThread(file) {
    await this.attempt(async () => {
      const content = JSON.parse(await file.text());
      let thread;
      try {
        thread = await call("POST", "/threads/import", content);
      } catch (error) {
        if (error.code !== "thread_exists") throw error;
        thread = await call("POST", `/threads/import?threadId=${newId()}`, content);
      }
      await this.threads.read();
      await this.openThread(thread.threadId, thread.agent);
    });
  }

  // --- Runs --------------------------------------------------------------------------------------

  async send(content) {
    if (this.isRunning) return;
    this.agent.addMessage({ id: newId(), role: "user", content });
    await this.run();
  }

  /** Replaces a user's message and what follows it: the run starts a new branch there. */
  async edit(id, content) {
    const { messages } = this.agent;
    const index = messages.findIndex((message) => message.id === id);
    if (index < 0 || this.isRunning) return;
    // The server takes a first message with a new id for a further one.
    const edited = { ...messages[index], id: index === 0 ? id : newId(), content };
    this.agent.setMessages([...messages.slice(0, index), edited]);
    await this.run();
  }

  /** Makes another answer to the last message of the user before a message. */
  async regenerate(id) {
    const { messages } = this.agent;
    const index = messages.findIndex((message) => message.id === id);
    const question = messages.slice(0, index + 1).findLastIndex(({ role }) => role === "user");
    if (question < 0 || this.isRunning) return;
    this.agent.setMessages(messages.slice(0, question + 1));
    await this.run();
  }

  /** Makes the branch of a message the current one. */
  async switchBranch(id) {
    await this.attempt(async () => {
      const { threadId } = this.agent;
      await call("PATCH", threadPath(threadId), { head: id });
      this.#reset(threadId);
      await this.#connect();
    });
  }

  /** `props`: further properties of this run alone. */
  async run(resume, props) {
    const { agent } = this;
    const tools = this.tools.offered();
    this.answers = new Map();
    this.refused = new Map();
    this.#resume = resume;
    this.canRetry = false;
    writeAddress(this.agentName, this.agent.threadId);
    await this.#during(agent, async () => {
      this.runId = newId();
      // A fast user sends a message before they are known.
      await this.#capabilitiesRead;
      if (agent !== this.agent || this.wasStopped) return;
      const canFollow = this.capabilities?.transport?.resumable;
      // The run continues when the page is reloaded.
      const { forwardedProps: given, context, headers = {} } = this.extras ?? {};
      const forwardedProps = { ...(canFollow && { onDisconnect: "continue" }), ...given, ...props };
      agent.headers = headers;
      await this.#seen(agent, () => agent.runAgent({ runId: this.runId, tools, resume, forwardedProps, context }));
    });
    if (agent !== this.agent) return;
    this.canRetry = this.error !== undefined;
    this.changed();
    if (!this.error) await this.#answerCalls();
  }

  /** Starts the last run again: the same request if the server has not begun it, else another answer. */
  async retry() {
    const last = this.agent.messages.at(-1);
    if (this.isRunning || !last) return;
    const hasBegun = !this.canRetry || this.recorder.runs.get(this.runId)?.firstEventAt !== undefined;
    if (hasBegun) await this.regenerate(last.id);
    else await this.run(this.#resume);
  }

  /** The messages to begin with that the agent declares, in this language if it has them. */
  starters(language) {
    const declared = this.capabilities?.custom?.starters;
    return textsOf(declared?.[language] ?? declared?.en ?? declared);
  }

  /** The thread of a new chat has no name before its first run. */
  draftKey = () => (location.hash ? this.agent?.threadId : "new");

  /** Shows that the agent is running while `action` runs, then what the server has stored. */
  async #during(agent, action) {
    const turn = ++this.#turns;
    this.isRunning = true;
    this.wasStopped = false;
    this.announcement = "running";
    await this.attempt(async () => {
      try {
        await action();
      } catch (error) {
        // The client also throws what it has shown as an event.
        if (agent === this.agent && !this.error) throw error;
      }
    });
    if (agent !== this.agent) return;
    this.isRunning = false;
    if (this.phase !== "ready") return;
    const { error } = this;
    await this.attempt(() => this.#readThread());
    if (turn !== this.#turns) return; // the user has already sent the next message
    this.error ??= error;
    await this.threads.read();
    if (turn !== this.#turns) return;
    this.announcement = this.error ? "failed" : this.questions().length > 0 ? "asking" : "finished";
    this.changed();
  }

  /** Notes which message is the last one of the run that `action` receives. */
  async #seen(agent, action) {
    const { runId } = this;
    try {
      await action();
    } finally {
      const last = agent.messages.findLast(({ role }) => role !== "tool");
      if (runId && agent === this.agent && last && last.role !== "user" && !this.lastOfRun[last.id]) {
        this.lastOfRun = { ...this.lastOfRun, [last.id]: runId };
        if (!this.recording) writeTab(`runs.${agent.threadId}`, this.lastOfRun);
      }
    }
  }

  async stop() {
    if (this.recording) return this.agent.skip();
    this.wasStopped = true;
    const path = `${threadPath(this.agent.threadId)}/runs/${encodeURIComponent(this.runId)}/cancel`;
    await this.attempt(() => call("POST", path));
  }

  // --- Questions of the agent --------------------------------------------------------------------

  /** The open interrupts that have no answer yet. */
  questions() {
    return (this.agent?.pendingInterrupts ?? []).filter(({ id }) => !this.answers.has(id));
  }

  /** The next run starts when all open interrupts have an answer. `payload` is absent if the question is abandoned. */
  async answer(interruptId, payload) {
    // A second click can come before the form is gone.
    if (this.isRunning || this.answers.has(interruptId)) return;
    const isCancelled = payload === undefined;
    const entry = isCancelled ? { interruptId, status: "cancelled" } : { interruptId, status: "resolved", payload };
    const { message, reason } = this.questions().find(({ id }) => id === interruptId) ?? {};
    this.answers.set(interruptId, entry);
    const after = this.agent.messages.findLast(({ role }) => role !== "tool")?.id;
    this.answered = [...this.answered, { after, message: message ?? reason, ...shownAnswer(payload) }];
    writeTab(`answers.${this.agent.threadId}`, this.answered);
    this.changed();
    if (this.questions().length > 0) return;
    await this.run([...this.answers.values()]);
  }

  /** Asks again what the last run has brought answers to, of which the server has refused one. Returns whether the reason has a field. */
  #askAgain(reason) {
    const answers = this.#resume ?? [];
    this.answered = this.answered.slice(0, this.answered.length - answers.length);
    writeTab(`answers.${this.agent.threadId}`, this.answered);
    const { id, name, text } = refusedField(reason);
    this.refused = new Map(answers.map(({ interruptId, payload }) => [
      interruptId, { payload, refusal: name && interruptId === id ? { name, text } : undefined },
    ]));
    return [...this.refused.values()].some(({ refusal }) => refusal);
  }

  /** True if a click on a surface can start a run. */
  canAct = () => !this.isRunning && !this.recording && this.questions().length === 0;

  /** Sends a click on a surface: its name, the surface, the component, and the values that the agent has asked for. */
  async act(userAction) {
    if (this.canAct()) await this.run(undefined, { a2uiAction: { userAction } });
  }

  /** The calls of the page's tools without a result. */
  openCalls() {
    return this.recording ? [] : this.tools.openCalls(this.agent?.messages ?? []);
  }

  /** Gives the scripted answers. A tool that asks waits for `answerCall`. */
  async #answerCalls() {
    if (this.wasStopped) return;
    const calls = this.openCalls();
    const scripted = calls.filter((call) => !this.tools.named(call.function.name).asks);
    for (const call of scripted) this.#addResult(call, this.tools.named(call.function.name).answer);
    if (scripted.length > 0 && this.openCalls().length === 0) await this.run();
  }

  async answerCall(call, content) {
    if (this.isRunning || !this.openCalls().some(({ id }) => id === call.id)) return;
    this.#addResult(call, content);
    if (this.openCalls().length === 0) await this.run();
  }

  #addResult(call, content) {
    this.agent.addMessage({ id: newId(), role: "tool", toolCallId: call.id, content });
  }

  setExtras(extras) {
    this.extras = extras;
    writeTab("extras", extras);
    this.changed();
  }

  setTools(list) {
    this.tools.replace(list);
    this.changed();
  }

  // --- Recordings --------------------------------------------------------------------------------

  #isOfPage = (runId) => this.recorder?.runs.get(runId)?.request !== undefined;

  #endedDetachedRun = (runId) =>
    this.thread?.runs?.find((run) => run.runId === runId && run.detached && run.status !== "running");

  canSave = (runId) => !this.isRunning && !this.recording && (this.#isOfPage(runId) || this.#endedDetachedRun(runId) !== undefined);

  /** Saves a run of this page as the page has seen it, and another one as the server has stored it. */
  saveRecording(runId) {
    return this.attempt(async () => {
      if (this.#isOfPage(runId)) {
        const recorded = this.recorder.recorded(runId);
        download(recordingName(recorded), new Blob([writeRecording(recorded)], { type: "application/jsonl" }));
      } else {
        const { startedAt } = this.#endedDetachedRun(runId);
        download(recordingName({ startedAt, request: { runId } }), await this.#storedRun(runId));
      }
    });
  }

  /** Shows a recording in place of the thread, which stays as it is. */
  async openRecording(file) {
    const recording = await this.attempt(() => readRecording(file));
    if (!recording) return;
    leaveThread();
    await this.playRecording(recording, false);
  }

  async playRecording(recording, isAtPace) {
    this.#reset(undefined, recording);
    const { agent, recorder } = this;
    const run = recordedRun(recording);
    this.thread = { runs: [run] };
    recorder.begin(run.runId, { startedAt: recording.startedAt, sentAt: 0 });
    this.runId = run.runId;
    await this.#during(agent, () => this.#seen(agent, () => agent.play(run.runId, isAtPace)));
  }

  // --- Events ------------------------------------------------------------------------------------

  mark(anchor) {
    this.marked = anchor;
    this.changed();
  }

  /** Reads the events of an earlier run with their times. They are kept for detached runs. */
  async readLog(runId) {
    const { recorder } = this;
    await this.attempt(async () => {
      const { startedAt, events } = await readRecording(new File([await this.#storedRun(runId)], runId));
      recorder.addEarlier(runId, startedAt, events);
    });
  }

  /** Returns an ended detached run as a recording. */
  async #storedRun(runId) {
    const response = await request(`${BASE}${threadPath(this.agent.threadId)}/runs/${encodeURIComponent(runId)}/recording`);
    return response.blob();
  }

  curl(runId) {
    const { request } = this.recorder.runs.get(runId) ?? {};
    return request && curlCommand(request);
  }
}
