// Speech becomes text of the message, if the server has a service that transcribes.

import { useEffect, useRef, useState } from "preact/hooks";

import { BASE, request } from "./api.js";
import { Button } from "./parts.jsx";
import { t } from "./texts.js";

/** Records until `stop`, which resolves to the recording. `cancel` throws it away. */
async function record() {
  const stream = await navigator.mediaDevices.getUserMedia({ audio: true });
  const recorder = new MediaRecorder(stream);
  const pieces = [];
  recorder.ondataavailable = ({ data }) => pieces.push(data);
  const release = () => stream.getTracks().forEach((track) => track.stop());
  const ended = new Promise((resolve) => {
    recorder.onstop = () => (release(), resolve(new Blob(pieces, { type: recorder.mimeType })));
  });
  recorder.start();
  return { stop: () => (recorder.stop(), ended), cancel: release };
}

async function transcribe(path, recording) {
  const body = new FormData();
  body.append("audio", recording, "recording.webm");
  const response = await request(BASE + path, { method: "POST", body });
  return (await response.json()).text;
}

// Not all systems have a character for it.
const Icon = () => (
  <svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true">
    <rect x="9" y="3" width="6" height="11" rx="3" />
    <path d="M6 11a6 6 0 0 0 12 0M12 17v4" />
  </svg>
);

/** @param {{ path: string, onText: (text: string) => void }} props `path`: of the route that makes text of speech */
export function Microphone({ path, onText }) {
  // idle, recording, busy
  const [phase, setPhase] = useState("idle");
  const [problem, setProblem] = useState();
  const recording = useRef();
  useEffect(() => () => recording.current?.cancel(), []);
  const start = async () => {
    recording.current = await record();
    setPhase("recording");
  };
  const finish = async () => {
    setPhase("busy");
    const text = await transcribe(path, await recording.current.stop());
    recording.current = undefined;
    setPhase("idle");
    if (text.trim()) onText(text.trim());
  };
  const press = async () => {
    setProblem(undefined);
    try {
      await (phase === "recording" ? finish() : start());
    } catch (error) {
      recording.current = undefined;
      setPhase("idle");
      setProblem(error.message);
    }
  };
  return (
    <>
      <Button kind={`icon ${phase === "recording" ? "recording" : ""}`} label={t(phase === "recording" ? "finishSpeech" : "speak")}
        aria-pressed={phase === "recording"} disabled={phase === "busy"} onClick={press}><Icon /></Button>
      {problem && <small class="problem" role="alert">{t("speechFailed", problem)}</small>}
    </>
  );
}
