// The tools that this page offers to agents.

import { readSetting, writeSetting } from "./storage.js";

export class PageTools {
  /** { name, description, parameters, answer, asks }: the user confirms or changes the answer of a tool that `asks`. */
  list = readSetting("tools") ?? [];

  named = (name) => this.list.find((tool) => tool.name === name);

  replace(list) {
    this.list = list;
    writeSetting("tools", list);
  }

  /** Returns the tools as an agent's input has them. */
  offered() {
    return this.list.map(({ name, description, parameters }) => ({ name, description, parameters }));
  }

  /** Returns the calls of these tools without a result. */
  openCalls(messages) {
    const answered = new Set(messages.map((message) => message.toolCallId));
    const calls = messages.flatMap((message) => message.toolCalls ?? []);
    return calls.filter((call) => !answered.has(call.id) && this.named(call.function.name));
  }
}
