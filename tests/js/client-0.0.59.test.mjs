// @ag-ui/client 0.0.59, the last release before 1.0: what pages in the field still use. It must be able to do
// without everything that is new in 1.0.

import { HttpAgent } from "client-0-0-59";

import { testConversations } from "./conversations.mjs";

/** This client checks events against the schemas of its day: it drops what is newer, and fills in one default. */
function presents(event) {
  if (event.type === "ACTIVITY_SNAPSHOT") return { ...event, replace: true };
  if (event.outcome) return { ...event, outcome: { type: event.outcome.type } };
  return event;
}

testConversations((options) => new HttpAgent(options), { presents, reportsPending: false });
