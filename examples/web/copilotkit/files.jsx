// Files of the user, which go to the server once, and files of the agent.
import { useMemo } from "react";
import { z } from "zod";

import { call } from "./server";

const UPLOADS_AT_ONCE = 3;

/** Returns CopilotKit's `attachments`: files are picked, dropped or pasted, and a message names them by their URL. */
export function useAttachments(setProblem) {
  return useMemo(
    () => ({
      enabled: true,
      maxConcurrentUploads: UPLOADS_AT_ONCE,
      async onUpload(file) {
        const { part } = await call("POST", "/files", file);
        return { ...part.source, metadata: part.metadata };
      },
      onUploadFailed: ({ file, message }) => setProblem(`${file.name}: ${message}`),
    }),
    [setProblem],
  );
}

const isPicture = (mimeType) => mimeType.startsWith("image/");

/** A file that an agent, a model or a tool has made. `problem`: why there is none. */
function File({ content: { name, mimeType, bytes, url, width, height, problem } }) {
  const size = <small>{problem ?? `${Math.ceil(bytes / 1024).toLocaleString()} KiB`}</small>;
  if (!url) return <p className="card">{name ?? mimeType} {size}</p>;
  return (
    <a className="card file" href={url} target="_blank" rel="noreferrer">
      {isPicture(mimeType) && <img src={url} alt={name ?? ""} width={width} height={height} />}
      <span>{name ?? mimeType} {size}</span>
    </a>
  );
}

export const activities = [{ activityType: "agui-server.file", content: z.looseObject({ mimeType: z.string() }), render: File }];
