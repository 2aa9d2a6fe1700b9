// Files in messages: pictures, sound and video are shown, others are named.

import { useRef, useState } from "preact/hooks";

import { fileName, fileUrl, sizeOf } from "./content.js";
import { Button } from "./parts.jsx";
import { t } from "./texts.js";

const UNITS = ["B", "KB", "MB", "GB"];

/** Returns a number of bytes as people read it. */
export function sizeText(bytes) {
  const power = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), UNITS.length - 1);
  return `${(bytes / 1000 ** power).toFixed(power > 0 && bytes < 10 * 1000 ** power ? 1 : 0)} ${UNITS[power]}`;
}

/** The files of a message: pictures as thumbnails beside each other, each other file on a line. */
export function Files({ parts }) {
  // A file that was deleted, or whose URL has expired, is named as one that is not shown.
  const [broken, setBroken] = useState(new Set());
  const isPicture = (part) => part.type === "image" && fileUrl(part) && !broken.has(fileUrl(part));
  const pictures = parts.filter(isPicture);
  return (
    <>
      {pictures.length > 0 && (
        <div class={`gallery${pictures.length > 1 ? " has-several" : ""}`}>
          {pictures.map((part) => <Picture part={part} onBroken={() => setBroken(new Set(broken).add(fileUrl(part)))} />)}
        </div>
      )}
      {parts.filter((part) => !isPicture(part)).map((part) => <OtherFile part={part} />)}
    </>
  );
}

/** A thumbnail that opens the picture in its size. */
function Picture({ part, onBroken }) {
  const dialog = useRef();
  const [isOpen, setOpen] = useState(false);
  const [url, name] = [fileUrl(part), fileName(part)];
  const open = () => {
    setOpen(true);
    dialog.current.showModal();
  };
  return (
    <>
      <button type="button" class="thumbnail" onClick={open} title={t("open", name)} aria-label={t("open", name)}>
        <img class="attachment" src={url} alt={name} onError={onBroken} />
      </button>
      <dialog ref={dialog} class="viewer" aria-label={name} onClose={() => setOpen(false)} onClick={() => dialog.current.close()}>
        {isOpen && <img src={url} alt={name} />}
        <p><FileName part={part} /><span class="spacer" /><Button onClick={() => dialog.current.close()}>{t("close")}</Button></p>
      </dialog>
    </>
  );
}

function OtherFile({ part }) {
  const url = fileUrl(part);
  const Player = url && { audio: "audio", video: "video" }[part.type];
  return (
    <>
      {Player && <Player class="attachment" controls preload="metadata" src={url} aria-label={fileName(part)} />}
      <p class="attachment-name"><FileName part={part} /></p>
    </>
  );
}

/** The name of a file, which leads to it, and its size. */
function FileName({ part }) {
  const [href, bytes] = [fileUrl(part) ?? part.source?.value, sizeOf(part)];
  const isLink = /^https?:/.test(href ?? "");
  return (
    <>
      {isLink ? <a href={href} target="_blank" rel="noreferrer">{fileName(part)}</a> : fileName(part)}
      {bytes !== undefined && <small> {sizeText(bytes)}</small>}
      {part.metadata?.problem && <small class="problem"> {String(part.metadata.problem)}</small>}
    </>
  );
}

/** The files of the next message, with what has become of their uploads. */
export function UploadList({ uploads }) {
  return uploads.list.length > 0 && (
    <ul class="attachments">
      {uploads.list.map((entry) => (
        <li key={entry.id} class={entry.error ? "is-failed" : ""}>
          {entry.preview && <img src={entry.preview} alt="" />}
          <span class="upload">
            <span class="upload-name">{entry.name}</span>
            {entry.error ? (
              <small class="problem" role="alert">
                {entry.error.message || t("failed")} {entry.error.code && <code>{entry.error.code}</code>}
                {entry.error.canRetry && <Button kind="quiet" onClick={() => uploads.retry(entry)}>{t("retry")}</Button>}
              </small>
            ) : entry.part ? (
              <small>{sizeText(entry.bytes)}</small>
            ) : (
              <progress value={entry.progress} aria-label={t("uploads", entry.name)} />
            )}
          </span>
          <Button kind="quiet" label={t("detach", entry.name)} onClick={() => uploads.remove(entry)}>×</Button>
        </li>
      ))}
    </ul>
  );
}
