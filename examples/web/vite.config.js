import { defineConfig } from "vite";

const pages = ["first", "plain", "copilotkit-first", "copilotkit", "assistant-ui", "tanstack"];

export default defineConfig({
  // A page finds its files beside it, wherever it is served.
  base: "./",
  build: {
    rollupOptions: { input: pages.map((page) => `${page}/index.html`) },
    chunkSizeWarningLimit: 10_000,
  },
});
