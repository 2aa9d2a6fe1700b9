import { defineConfig } from "vite";

const pages = ["first", "plain", "copilotkit-first", "copilotkit", "assistant-ui", "tanstack", "ai-sdk"];

export default defineConfig({
  // A page finds its files beside it, wherever it is served.
  base: "./",
  build: {
    // For `await` at the top of a page.
    target: "es2022",
    rollupOptions: { input: pages.map((page) => `${page}/index.html`) },
    chunkSizeWarningLimit: 10_000,
  },
});
