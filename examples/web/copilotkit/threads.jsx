// The threads that are not archived, the latest first. The list keeps itself current, also about other tabs.
import { useThreads } from "@copilotkit/react-core/v2";

const THREADS_PER_PAGE = 40;

export function Threads({ current, open, isShown, onProblem }) {
  const list = useThreads({ agentId: "default", limit: THREADS_PER_PAGE });
  const attempt = (change) => change.catch((error) => onProblem(error.message));
  const rename = ({ id, name }) => {
    const chosen = prompt("Name", name ?? "");
    if (chosen) attempt(list.renameThread(id, chosen));
  };
  return (
    <nav className={isShown ? "threads is-shown" : "threads"} aria-label="Conversations">
      <button className="primary" onClick={() => open(crypto.randomUUID())}>New</button>
      {list.listError && <p className="problem" role="alert">{list.listError.message}</p>}
      <div className="rows">
        {list.threads.map((thread) => (
          <span key={thread.id} className="row">
            <button className="name" aria-current={thread.id === current || undefined} onClick={() => open(thread.id)}>
              {thread.name ?? "No name yet"}
            </button>
            <button className="icon" aria-label="Rename" title="Rename" onClick={() => rename(thread)}>✎</button>
            <button className="icon" aria-label="Archive" title="Archive" onClick={() => attempt(list.archiveThread(thread.id))}>✕</button>
          </span>
        ))}
      </div>
      {list.hasMoreThreads && <button disabled={list.isFetchingMoreThreads} onClick={list.fetchMoreThreads}>More</button>}
    </nav>
  );
}
