// The page's storage: settings for all tabs; the key, drafts and answers for this tab only.

const PREFIX = "agui-playground.";

function reader(storage) {
  return (name) => {
    try {
      return JSON.parse(storage().getItem(PREFIX + name)) ?? undefined;
    } catch {
      return undefined; // no storage in this browser, or the value of another version
    }
  };
}

function writer(storage) {
  return (name, value) => {
    try {
      if (value === undefined) storage().removeItem(PREFIX + name);
      else storage().setItem(PREFIX + name, JSON.stringify(value));
    } catch {
      // The page works without it.
    }
  };
}

export const readSetting = reader(() => localStorage);
export const writeSetting = writer(() => localStorage);
export const readTab = reader(() => sessionStorage);
export const writeTab = writer(() => sessionStorage);

/** Forgets the key with drafts and answers. */
export function clearTab() {
  try {
    for (const name of Object.keys(sessionStorage)) if (name.startsWith(PREFIX)) sessionStorage.removeItem(name);
  } catch {
    // There is no storage in this browser.
  }
}
