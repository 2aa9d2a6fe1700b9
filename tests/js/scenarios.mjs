// The demo's conversations, in English and in Chinese: what is said, and what must come back.
//
// The first six are those of the user's documents (the guide's scenarios 1 to 4 and its first example), with
// the very deltas printed there. Ids are names here; see ids.mjs for how they are compared.

// --- What a run is made of --------------------------------------------------------------------------

const text = (id, ...deltas) => [
  { type: "TEXT_MESSAGE_START", messageId: id, role: "assistant" },
  ...deltas.map((delta) => ({ type: "TEXT_MESSAGE_CONTENT", messageId: id, delta })),
  { type: "TEXT_MESSAGE_END", messageId: id },
];

const start = (id, name, parent) => ({
  type: "TOOL_CALL_START",
  toolCallId: id,
  toolCallName: name,
  ...(parent && { parentMessageId: parent }),
});
const args = (id, delta) => ({ type: "TOOL_CALL_ARGS", toolCallId: id, delta });
const end = (id) => ({ type: "TOOL_CALL_END", toolCallId: id });
const call = (id, name, json, parent) => [start(id, name, parent), args(id, json), end(id)];
const result = (id, toolCallId, content) => ({ type: "TOOL_CALL_RESULT", messageId: id, toolCallId, content });

const assistant = (id, content, ...toolCalls) => ({
  id,
  role: "assistant",
  ...(content !== undefined && { content }),
  ...(toolCalls.length > 0 && { toolCalls }),
});
const toolCall = (id, name, json) => ({ id, type: "function", function: { name, arguments: json } });
const tool = (id, toolCallId, content) => ({ id, role: "tool", toolCallId, content });

const parameters = (...names) => ({
  type: "object",
  properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])),
});
const SEARCH = { name: "search_local_files", description: "Search user's local files", parameters: parameters("keyword") };
const CONFIRM = { name: "confirmAction", description: "Request user confirmation", parameters: parameters("action", "count") };
const WEATHER = { name: "get_weather", description: "Get weather for a specified city", parameters: parameters("city") };

// --- Conversations: one object per run. `events` lacks the run's own first and last event. -----------

/** A question with an answer in words. */
const answered = (user, ...deltas) => [
  { user, events: text("a", ...deltas), adds: [assistant("a", deltas.join(""))] },
];

const weather = (user, city, before, report, after, tools) => {
  const json = JSON.stringify({ city });
  return [
    {
      user,
      tools,
      events: [
        ...text("a", before),
        ...call("c", "get_weather", json, "a"),
        result("t", "c", report),
        ...text("b", after),
      ],
      adds: [assistant("a", before, toolCall("c", "get_weather", json)), tool("t", "c", report), assistant("b", after)],
    },
  ];
};

/** A tool of the application's: the run ends with the call, the next one brings its result. */
const frontend = (user, spec, json, before, answer, after) => [
  {
    user,
    tools: [spec],
    events: [...(before ? text("a", before) : []), ...call("c", spec.name, json, before && "a")],
    // A call with no message to belong to makes the client mint one, named after the call.
    adds: [assistant(before ? "a" : "c", before, toolCall("c", spec.name, json))],
    pending: ["c"],
  },
  {
    answer: { toolCallId: "c", ...answer },
    tools: [spec],
    events: text("b", after),
    adds: [assistant("b", after)],
  },
];

const counted = (user) => [
  { user, paced: 100, events: text("a", "1 ", "2 ", "3 ", "4 ", "5"), adds: [assistant("a", "1 2 3 4 5")] },
];

const thought = (user, thoughts, deltas) => [
  {
    user,
    events: [
      { type: "REASONING_START", messageId: "s" },
      { type: "REASONING_MESSAGE_START", messageId: "r", role: "reasoning" },
      ...thoughts.map((delta) => ({ type: "REASONING_MESSAGE_CONTENT", messageId: "r", delta })),
      { type: "REASONING_MESSAGE_END", messageId: "r" },
      { type: "REASONING_END", messageId: "s" },
      ...text("a", ...deltas),
    ],
    adds: [{ id: "r", role: "reasoning", content: thoughts.join("") }, assistant("a", deltas.join(""))],
  },
];

const planned = (user, goal) => {
  const step = (name, index, value) => ({ op: "replace", path: `/steps/${index}/status`, value });
  const state = (...delta) => ({ type: "STATE_DELTA", delta });
  const progress = (value) => ({
    type: "ACTIVITY_DELTA",
    messageId: "p",
    activityType: "PLAN",
    patch: [{ op: "replace", path: "/done", value }],
  });
  const steps = (status) => ["Gather", "Decide"].map((title) => ({ title, status }));
  return [
    {
      user,
      events: [
        { type: "STATE_SNAPSHOT", snapshot: { goal, steps: steps("pending") } },
        { type: "ACTIVITY_SNAPSHOT", messageId: "p", activityType: "PLAN", content: { goal, done: 0, of: 2 } },
        { type: "STEP_STARTED", stepName: "gather" },
        state(step("gather", 0, "running")),
        state(step("gather", 0, "done")),
        progress(1),
        { type: "STEP_FINISHED", stepName: "gather" },
        { type: "STEP_STARTED", stepName: "decide" },
        state(step("decide", 1, "running")),
        state(step("decide", 1, "done"), { op: "add", path: "/finished", value: true }),
        progress(2),
        { type: "STEP_FINISHED", stepName: "decide" },
        { type: "CUSTOM", name: "agui-server.plan-finished", value: { steps: 2 } },
        ...text("a", "The plan is done: both of its steps."),
      ],
      adds: [
        { id: "p", role: "activity", activityType: "PLAN", content: { goal, done: 2, of: 2 } },
        assistant("a", "The plan is done: both of its steps."),
      ],
      state: { goal, steps: steps("done"), finished: true },
    },
  ];
};

const parallel = (user) => [
  {
    user,
    events: [
      ...text("a", "I look up two things at once."),
      start("c", "get_weather"),
      start("d", "get_time"),
      // The arguments of the two calls come interleaved.
      args("c", '{"city'),
      args("d", '{"city":"Be'),
      args("c", '":"Bei'),
      args("d", 'ijing","for'),
      args("c", 'jing"}'),
      args("d", 'mat":"24h"}'),
      end("c"),
      end("d"),
      result("t", "c", "Sunny, 25°C"),
      result("u", "d", "14:05"),
      ...text("b", "In Beijing it is 14:05, sunny, and 25°C."),
    ],
    adds: [
      assistant("a", "I look up two things at once."),
      assistant("c", undefined, toolCall("c", "get_weather", '{"city":"Beijing"}')),
      tool("t", "c", "Sunny, 25°C"),
      assistant("d", undefined, toolCall("d", "get_time", '{"city":"Beijing","format":"24h"}')),
      tool("u", "d", "14:05"),
      assistant("b", "In Beijing it is 14:05, sunny, and 25°C."),
    ],
  },
];

const failed = (user) => [
  {
    user,
    events: text("a", "This run will fail"),
    adds: [assistant("a", "This run will fail")],
    error: { message: "The demo was asked to fail.", code: "demo_failure" },
  },
];

// --- The list -----------------------------------------------------------------------------------------

const both = (name, en, zh) => [
  { name, language: "en", turns: en },
  { name, language: "zh", turns: zh },
];
const deletion = (content, after) => {
  const json = '{"action":"delete temporary files","count":15}';
  return frontend("Delete all temporary files", CONFIRM, json, "About to delete 15 temporary files", { content }, after);
};
const deletionZh = (content, after) => {
  const json = '{"action":"删除临时文件","count":15}';
  return frontend("删除所有临时文件", CONFIRM, json, "即将删除 15 个临时文件", { content }, after);
};
const search = (answer, after) =>
  frontend("Help me search for report files locally", SEARCH, '{"keyword":"report"}', undefined, answer, after);
const searchZh = (answer, after) =>
  frontend("帮我搜索本地的报告文件", SEARCH, '{"keyword":"报告"}', undefined, answer, after);

export const scenarios = [
  ...both("hello", answered("Hello", "Hello", "! How can I help you?"), answered("你好", "你好", "!有什么可以帮你的吗?")),
  ...both(
    "weather today, with a tool of that name offered",
    weather("What's the weather like in Beijing today?", "Beijing", "Let me check", "Sunny, 25°C",
      "Beijing is sunny today with a temperature of 25°C.", [WEATHER]),
    weather("今天北京天气怎么样?", "北京", "让我查询一下", "晴天,25°C", "北京今天是晴天,温度25°C。", [WEATHER]),
  ),
  ...both(
    "weather by the server's own tool",
    weather("What's the weather like in Beijing?", "Beijing", "Let me check", "Sunny, 25°C", "Beijing is sunny today, 25°C."),
    weather("北京天气怎么样?", "北京", "让我查一下", "晴天,25°C", "北京今天晴天,25°C。"),
  ),
  ...both(
    "frontend tool",
    search({ content: '["2024_annual_report.pdf", "Q3_report.docx"]' },
      "Found 2 files: 2024_annual_report.pdf and Q3_report.docx"),
    searchZh({ content: '["2024年度报告.pdf", "Q3报告.docx"]' }, "找到了 2 个文件:2024年度报告.pdf 和 Q3报告.docx"),
  ),
  ...both(
    "frontend tool that fails",
    search({ content: "", error: "no permission" }, "The search failed: no permission"),
    searchZh({ content: "", error: "没有权限" }, "搜索失败:没有权限"),
  ),
  ...both(
    "human in the loop, confirmed",
    deletion("confirmed", "Successfully deleted 15 temporary files."),
    deletionZh("confirmed", "已删除 15 个临时文件。"),
  ),
  ...both(
    "human in the loop, declined",
    deletion("declined", "All right, nothing was deleted."),
    deletionZh("declined", "好的,没有删除任何文件。"),
  ),
  ...both("count", counted("count to 5"), counted("数到 5")),
  ...both(
    "think",
    thought("think about cats", ["The question is: ", "cats", ". ", "I have no model ", "to think with, ", "so I only ",
      "show how it looks."], ["I thought about it, ", "and this is ", "my answer."]),
    thought("思考 猫", ["问题是:", "猫", "。", "我没有模型,", "只是演示一下", "思考的样子。"], ["我想过了,", "这就是我的回答。"]),
  ),
  ...both("plan", planned("plan a party", "a party"), planned("计划 聚会", "聚会")),
  ...both("parallel", parallel("parallel"), parallel("并行")),
  ...both("fail", failed("fail"), failed("失败")),
  ...both(
    "unknown",
    answered("Qwertyuiop", "I am a demo agent without a model. Try: hello, what's the weather like in Beijing, count to 10, " +
      "think …, plan …, parallel, fail."),
    answered("随便说说", "我是一个没有模型的演示代理。试试:你好、北京天气怎么样、数到 10、思考 …、计划 …、并行、失败。"),
  ),
];

/** All events of one run, from its first to its last. */
export function eventsOf(turn, { threadId, runId }) {
  const success = { type: "success", ...(turn.pending && { pendingToolCallIds: turn.pending }) };
  return [
    { type: "RUN_STARTED", threadId, runId, protocolVersion: "1.0" },
    ...turn.events,
    turn.error ? { type: "RUN_ERROR", ...turn.error } : { type: "RUN_FINISHED", threadId, runId, outcome: success },
  ];
}

export const title = ({ name, language }) => `${name} (${language})`;
