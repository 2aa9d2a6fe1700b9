// The demo's conversations, in English and in Chinese: the user's messages and the expected events.
//
// The conversations from "hello" to "human in the loop, confirmed" come from the specification documents (scenarios 1
// to 4 and the first example), with the printed deltas; the failing tool and the declined confirmation are additions.
// Ids are names here; ids.mjs compares them.

// --- Parts of a run ---------------------------------------------------------------------------------

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
const offered = (name, description, ...names) => ({ name, description, parameters: parameters(...names) });
const SEARCH = offered("search_local_files", "Search user's local files", "keyword");
const CONFIRM = offered("confirmAction", "Request user confirmation for dangerous operations", "action", "count");
const WEATHER = offered("get_weather", "Get weather for a specified city", "city");

// --- Conversations: one object per run. `events` lacks the run's own first and last event. -----------

/** A question with a text response. */
const answered = (user, ...deltas) => [
  { user, events: text("a", ...deltas), adds: [assistant("a", deltas.join(""))] },
];

/** A message that the demo does not understand: it offers others. */
const unknown = (user, help, value) => {
  const [turn] = answered(user, help);
  return [{ ...turn, events: [...turn.events, { type: "CUSTOM", name: "agui-server.starters", value }] }];
};

/** A tool of the server, with its result in the same run. */
const weather = ({ user, city, says: [before, after], report, tools }) => {
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

/** A tool of the application: the run ends with the call, the next run brings its result. */
const frontend = (user, spec, json, before, answer, after) => [
  {
    user,
    tools: [spec],
    events: [...(before ? text("a", before) : []), ...call("c", spec.name, json, before && "a")],
    // For a call without a parent message the client creates a message with the call's id.
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

const COUNTED = Array.from({ length: 20 }, (_, index) => `${index + 1}${index < 19 ? " " : ""}`);
const counted = (user) => [
  { user, paced: 100, events: text("a", ...COUNTED), adds: [assistant("a", COUNTED.join(""))] },
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

const planned = (user, goal, titles, says) => {
  const step = (name, index, value) => ({ op: "replace", path: `/steps/${index}/status`, value });
  const state = (...delta) => ({ type: "STATE_DELTA", delta });
  const progress = (value) => ({
    type: "ACTIVITY_DELTA",
    messageId: "p",
    activityType: "PLAN",
    patch: [{ op: "replace", path: "/done", value }],
  });
  const steps = (status) => titles.map((title) => ({ title, status }));
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
        { type: "CUSTOM", name: "agui-server.plan_finished", value: { steps: 2 } },
        ...text("a", says),
      ],
      adds: [
        { id: "p", role: "activity", activityType: "PLAN", content: { goal, done: 2, of: 2 } },
        assistant("a", says),
      ],
      state: { goal, steps: steps("done"), finished: true },
    },
  ];
};

const parallel = (user, city, [before, sunny, after]) => {
  const weather = JSON.stringify({ city });
  const time = JSON.stringify({ city, format: "24h" });
  const thirds = (json) => {
    const size = Math.ceil(json.length / 3);
    return [0, 1, 2].map((index) => json.slice(index * size, (index + 1) * size));
  };
  return [
    {
      user,
      events: [
        ...text("a", before),
        start("c", "get_weather", "a"),
        start("d", "get_time", "a"),
        // The arguments of the two calls interleave.
        ...thirds(weather).flatMap((piece, index) => [args("c", piece), args("d", thirds(time)[index])]),
        end("c"),
        end("d"),
        result("t", "c", sunny),
        result("u", "d", "14:05"),
        ...text("b", after),
      ],
      adds: [
        assistant("a", before, toolCall("c", "get_weather", weather), toolCall("d", "get_time", time)),
        tool("t", "c", sunny),
        tool("u", "d", "14:05"),
        assistant("b", after),
      ],
    },
  ];
};

const failed = (user, says, message) => [
  {
    user,
    events: text("a", says),
    adds: [assistant("a", says)],
    error: { message, code: "demo_failure" },
  },
];

// --- The list -----------------------------------------------------------------------------------------

const both = (name, en, zh) => [
  { name, language: "en", turns: en },
  { name, language: "zh", turns: zh },
];
const deletion = (content, after) => {
  const json = '{"action":"delete temporary files","count":15}';
  const before = "About to delete 15 temporary files";
  return frontend("Delete all temporary files", CONFIRM, json, before, { content }, after);
};
const deletionZh = (content, after) => {
  const json = '{"action":"删除临时文件","count":15}';
  return frontend("删除所有临时文件", CONFIRM, json, "即将删除 15 个临时文件", { content }, after);
};
const search = (answer, after) =>
  frontend("Help me search for report files locally", SEARCH, '{"keyword":"report"}', undefined, answer, after);
const searchZh = (answer, after) =>
  frontend("帮我搜索本地的报告文件", SEARCH, '{"keyword":"报告"}', undefined, answer, after);

const HELP =
  "I am a demo agent without a model. Try: hello, what's the weather like in Beijing, count to 10, think …, plan …, " +
  "parallel, approve, approve two, delete inactive users, feedback, review a plan, form, show a form, fail, " +
  "search for report files locally, delete all temporary files.";
const HELP_ZH =
  "我是一个没有模型的演示 Agent。试试：你好、北京天气怎么样、数到 10、思考 …、计划 …、并行、批准、批准两个、删除不活跃的用户、反馈、审核计划、表单、显示表单、失败、" +
  "帮我搜索本地的报告文件、删除所有临时文件。";

export const scenarios = [
  ...both(
    "hello",
    answered("Hello", "Hello", "! How can I help you?"),
    answered("你好", "你好", "!有什么可以帮你的吗?"),
  ),
  ...both(
    "weather today, with a tool of that name offered",
    weather({
      user: "What's the weather like in Beijing today?",
      city: "Beijing",
      says: ["Let me check", "Beijing is sunny today with a temperature of 25°C."],
      report: "Sunny, 25°C",
      tools: [WEATHER],
    }),
    weather({
      user: "今天北京天气怎么样?",
      city: "北京",
      says: ["让我查询一下", "北京今天是晴天,温度25°C。"],
      report: "晴天,25°C",
      tools: [WEATHER],
    }),
  ),
  ...both(
    "weather by the server's own tool",
    weather({
      user: "What's the weather like in Beijing?",
      city: "Beijing",
      says: ["Let me check", "Beijing is sunny today, 25°C."],
      report: "Sunny, 25°C",
    }),
    weather({
      user: "北京天气怎么样?",
      city: "北京",
      says: ["让我查一下", "北京今天晴天,25°C。"],
      report: "晴天,25°C",
    }),
  ),
  ...both(
    "frontend tool",
    search(
      { content: '["2024_annual_report.pdf", "Q3_report.docx"]' },
      "Found 2 files: 2024_annual_report.pdf and Q3_report.docx",
    ),
    searchZh({ content: '["2024年度报告.pdf", "Q3报告.docx"]' }, "找到了 2 个文件:2024年度报告.pdf 和 Q3报告.docx"),
  ),
  ...both(
    "frontend tool that fails",
    search({ content: "", error: "no permission" }, "The search failed: no permission"),
    searchZh({ content: "", error: "没有权限" }, "搜索失败：没有权限"),
  ),
  ...both(
    "human in the loop, confirmed",
    deletion("confirmed", "Successfully deleted 15 temporary files."),
    deletionZh("confirmed", "已删除 15 个临时文件。"),
  ),
  ...both(
    "human in the loop, declined",
    deletion("declined", "All right, nothing was deleted."),
    deletionZh("declined", "好的，没有删除任何文件。"),
  ),
  // This answer contains the word "confirmed", too.
  ...both(
    "human in the loop, declined by an object",
    deletion('{"confirmed":false}', "All right, nothing was deleted."),
    deletionZh('{"confirmed": false}', "好的，没有删除任何文件。"),
  ),
  ...both("count", counted("count to 20"), counted("数到 20")),
  ...both(
    "think",
    thought(
      "think about cats",
      ["The question is: ", "cats", ". ", "I have no model ", "to think with, ", "so I only ", "show how it looks."],
      ["I thought about it, ", "and this is ", "my answer."],
    ),
    thought(
      "思考 猫",
      ["问题是：", "猫", "。", "我没有模型，", "只是演示一下", "思考的样子。"],
      ["我想过了，", "这就是我的回答。"],
    ),
  ),
  ...both(
    "plan",
    planned("plan a party", "a party", ["Gather", "Decide"], "The plan is done: both of its steps."),
    planned("计划 聚会", "聚会", ["收集", "决定"], "计划的两个步骤都完成了。"),
  ),
  ...both(
    "parallel",
    parallel("parallel", "Beijing", [
      "I look up two things at once.",
      "Sunny, 25°C",
      "In Beijing it is 14:05, sunny, and 25°C.",
    ]),
    parallel("并行", "北京", ["我同时查两件事。", "晴天,25°C", "北京现在 14:05，晴天，25°C。"]),
  ),
  ...both(
    "fail",
    failed("fail", "This run will fail", "The demo was asked to fail."),
    failed("失败", "这次运行将会失败", "演示按要求失败了。"),
  ),
  ...both(
    "unknown",
    unknown("Qwertyuiop", HELP, ["Hello", "What's the weather like in Beijing?", "plan a party", "approve", "form"]),
    unknown("随便说说", HELP_ZH, ["你好", "北京天气怎么样？", "计划聚会", "批准", "表单"]),
  ),
];

/** Returns all events of one run. `version` is that of AG-UI in the stream. */
export function eventsOf(turn, { threadId, runId }, version = "1.1") {
  const success = { type: "success", ...(turn.pending && { pendingToolCallIds: turn.pending }) };
  return [
    { type: "RUN_STARTED", threadId, runId, protocolVersion: version },
    ...turn.events,
    turn.error ? { type: "RUN_ERROR", ...turn.error } : { type: "RUN_FINISHED", threadId, runId, outcome: success },
  ];
}

export const title = ({ name, language }) => `${name} (${language})`;
