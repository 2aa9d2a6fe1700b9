// @ag-ui/client 0.0.59, the last release before 1.0. Deployed pages still use it: the demo must work without the
// additions of 1.0.

import { HttpAgent } from "client-0-0-59";

import { testConversations } from "./conversations.mjs";

/** This client parses events with the schemas of 0.0.59: it drops newer members and fills in one default. */
function presents(event) {
  if (event.type === "ACTIVITY_SNAPSHOT") return { ...event, replace: true };
  if (event.outcome) return { ...event, outcome: { type: event.outcome.type } };
  return event;
}

testConversations((options) => new HttpAgent(options), { presents, reportsPending: false });
