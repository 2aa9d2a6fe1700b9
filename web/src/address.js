// The page's address names the agent and the thread, so a reload and a link open them again.

const WITHOUT_NAMES = location.pathname + location.search;

/** Returns the names of the agent and the thread; none if the address cannot be decoded. */
export function readAddress() {
  try {
    return location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  } catch {
    return [];
  }
}

export function writeAddress(agentName, threadId) {
  const hash = `#/${encodeURIComponent(agentName)}/${encodeURIComponent(threadId)}`;
  if (location.hash !== hash) history.pushState(undefined, "", hash);
}

export const clearAddress = () => history.replaceState(undefined, "", WITHOUT_NAMES);

/** The back button returns to the thread. */
export function leaveThread() {
  if (location.hash) history.pushState(undefined, "", WITHOUT_NAMES);
}
