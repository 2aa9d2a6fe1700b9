// The language of the page: that of the browser, until another one is chosen.

import { readSetting, writeSetting } from "./storage.js";
import { TEXTS } from "./translations.js";

const LANGUAGES = Object.keys(TEXTS);
const ofBrowser = () => (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

let language = LANGUAGES.includes(readSetting("language")) ? readSetting("language") : ofBrowser();

export const currentLanguage = () => language;

export function useLanguage(name) {
  language = name;
  writeSetting("language", name);
  document.documentElement.lang = name;
}

/** Returns a text with its parameters. */
export const t = (key, ...parameters) => TEXTS[language][key].replace(/\{(\d)\}/g, (_, index) => parameters[index]);
