// Imported before @ag-ui/client: its schemas otherwise try `new Function`, which the page's policy forbids.

import { config } from "zod/v4";

config({ jitless: true });
