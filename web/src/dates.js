// Times in the language of the page.

import { currentLanguage } from "./texts.js";

const DAY_MS = 86_400_000;

/** The time for today, the date for other days. */
export function shortTime(text) {
  const date = new Date(text);
  const isRecent = Date.now() - date < DAY_MS;
  const options = isRecent ? { hour: "2-digit", minute: "2-digit" } : { month: "short", day: "numeric" };
  return date.toLocaleString(currentLanguage(), options);
}

export const clock = (time) => new Date(time).toTimeString().slice(0, 8);

export const fullTime = (time) => new Date(time).toLocaleString(currentLanguage(), { dateStyle: "medium", timeStyle: "medium" });
