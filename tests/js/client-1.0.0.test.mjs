// @ag-ui/client 1.0.0, the reference client of AG-UI 1.0.

import { HttpAgent } from "@ag-ui/client";

import { testConversations } from "./conversations.mjs";

testConversations((options) => new HttpAgent(options));
