// @ag-ui/client 1.0.0, the reference consumer of the protocol this server speaks.

import { HttpAgent } from "@ag-ui/client";

import { testConversations } from "./conversations.mjs";

testConversations((options) => new HttpAgent(options));
