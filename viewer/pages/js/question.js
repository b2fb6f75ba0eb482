// A pending call and the possible decisions: approve, approve with other arguments, reject with a
// reason, an answer, or the outcome of an interrupted call.
import { html, useLayoutEffect, useRef, useState } from "../vendor/htm-preact.js";
import { post, runPath } from "./api.js";
import { argsOf, parse, pretty } from "./json.js";
import { diff, near } from "./linediff.js";
import { Badge, Diffed, Icon, Trouble } from "./parts.js";
import { Args } from "./schema.js";
import { refreshInbox, say, useStore } from "./store.js";
import { Long, visible } from "./text.js";

// wants returns the kind of decision that a pending call needs.
export const wants = (w) => (w.outcome === "unknown" ? "word" : w.passive ? "result" : "approval");

const asks = { approval: "May it run?", result: "What is its result?", word: "It was begun and interrupted. Did it happen?" };

// onward moves the focus to the next item after a focused pending call has disappeared.
function onward(next) {
  if (document.activeElement !== document.body) return;
  const el = next?.isConnected ? next : document.querySelector("main h1");
  el?.setAttribute("tabindex", "-1");
  el?.focus();
}

export function Question({ run, user, agent, w, onDone }) {
  const s = useStore();
  const [mode, setMode] = useState(""); // "", edit, deny, happened
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(null);
  const was = argsOf(w.call);
  const [text, setText] = useState(was);
  const [reason, setReason] = useState("");
  const [answer, setAnswer] = useState("");
  const [failed, setFailed] = useState(false);
  const [rest, setRest] = useState(0); // characters of the arguments that were not shown: only what was shown can be approved
  const kind = wants(w);
  const preview = s.waiting.find((x) => x.run.id === run && x.pending.some((p) => p.key === w.key && p.digest === w.digest))?.previews?.[w.key];
  const base = (agent || "").replace(/\/call$/, "");
  const tool = (s.tools || []).find((t) => t.name === w.call.name && (!base || t.agent === base));
  const minutes = Math.ceil((w.valid_for || 0) / 6e10); // nanoseconds

  const box = useRef();
  useLayoutEffect(() => {
    if (mode) box.current.querySelector(mode === "edit" ? ".args input, .args textarea, .args select" : "[data-autofocus]")?.focus();
  }, [mode]);

  const send = async (what, body, said) => {
    setBusy(true);
    setFault(null);
    try {
      await post(runPath(run, "/" + what) + (user === undefined ? "" : "?user=" + encodeURIComponent(user)), body);
      say(said + " " + w.call.name);
      const all = [...document.querySelectorAll(".question")];
      const next = all[all.indexOf(box.current) + 1] || all[all.indexOf(box.current) - 1];
      refreshInbox().then(() => setTimeout(() => onward(next), 100));
      onDone?.(what);
    } catch (e) {
      setFault(e);
      if (e.code === "conflict") refreshInbox();
    } finally {
      setBusy(false);
    }
  };
  const head = { key: w.key, digest: w.digest };
  const approve = () => send("approve", head, "Approved");
  const edited = text !== was;
  let good = true;
  try {
    JSON.parse(text || "{}");
  } catch {
    good = false;
  }
  // The text is sent unchanged: parsing and writing it again could change a number.
  const approveEdited = () => send("approve", edited ? `{"key":${JSON.stringify(w.key)},"digest":${JSON.stringify(w.digest)},"args":${text.trim() || "{}"}}` : head, "Approved with changes");
  const deny = () => send("deny", { ...head, reason: reason.trim() || undefined }, "Denied");
  const give = () => send("answer", { ...head, text: answer, is_error: failed || undefined }, "Answered");

  return html`<article class="question" ref=${box} data-key=${w.key} aria-label=${"Question about " + w.call.name}>
    <header>
      <span class="kindicon call"><${Icon} name="call" /></span>
      <h3 class="mono">${visible(w.call.name)}</h3>
      ${tool && html`<span class=${"effect " + tool.effect}>${tool.effect}</span>`}
      ${w.attempt > 0 && html`<span class="chip">begun ${w.attempt}× before</span>`}
      ${minutes > 0 && html`<span class="muted">a yes is valid for ${minutes} min</span>`}
    </header>
    <p class="asks"><strong>${asks[kind]}</strong>${w.why ? html` <span>${visible(w.why)}</span>` : ""}</p>
    ${mode === "edit"
      ? html`<${Args} schema=${tool?.input} text=${text} onText=${setText} label="Arguments to run it with" />
          ${edited && good && html`<p class="muted">What changes:</p><${Diffed} lines=${near(diff(was, tidy(text)))} label="changes" />`}`
      : preview
        ? html`<${Effect} preview=${preview} /><details class="fold"><summary>Arguments</summary><${Long} text=${was} kind="json" label="arguments" onRest=${setRest} /></details>`
        : html`<${Long} text=${was} kind="json" label="arguments" onRest=${setRest} />`}
    ${rest > 0 && html`<p class="muted">Show all arguments to approve the call.</p>`}
    ${mode === "deny" && html`<label class="field"><span>Why not? The model gets the reason.</span><textarea rows="2" data-autofocus value=${reason} onInput=${(e) => setReason(e.target.value)} /></label>`}
    ${(kind === "result" || mode === "happened") && html`<label class="field"><span>${kind === "result" ? "The result, for the model" : "What came of it, for the model"}</span>
      <textarea rows="3" data-autofocus=${mode === "happened"} value=${answer} onInput=${(e) => setAnswer(e.target.value)} /></label>
      <label class="field check"><input type="checkbox" checked=${failed} onChange=${(e) => setFailed(e.target.checked)} /> <span class="fieldname">It failed: it did not do what was asked</span></label>`}
    <${Trouble} fault=${fault} />
    <div class="actions">
      ${mode === "" && kind === "approval" && html`
        <button class="primary" data-do="approve" disabled=${busy || rest > 0} onClick=${approve}><${Icon} name="ok" /> Approve</button>
        <button data-do="edit" disabled=${busy} onClick=${() => setMode("edit")}>Edit…</button>
        <button class="danger" data-do="deny" disabled=${busy} onClick=${() => setMode("deny")}><${Icon} name="no" /> Deny…</button>`}
      ${mode === "edit" && html`
        <button class="primary" data-do="send" disabled=${busy || !good} onClick=${approveEdited}><${Icon} name="ok" /> ${edited ? "Approve with these" : "Approve"}</button>
        <button data-do="back" onClick=${() => (setMode(""), setText(was))}>Back</button>`}
      ${mode === "deny" && html`
        <button class="danger" data-do="send" disabled=${busy} onClick=${deny}><${Icon} name="no" /> Deny</button>
        <button data-do="back" onClick=${() => setMode("")}>Back</button>`}
      ${(kind === "result" || mode === "happened") && html`<button class="primary" data-do="answer" disabled=${busy || answer === ""} onClick=${give}>Give the result</button>`}
      ${mode === "happened" && html`<button data-do="back" onClick=${() => setMode("")}>Back</button>`}
      ${mode === "" && kind === "result" && html`<button class="danger" data-do="deny" disabled=${busy} onClick=${() => setMode("deny")}>Refuse…</button>`}
      ${mode === "" && kind === "word" && html`
        <button class="primary" data-do="happened" disabled=${busy} onClick=${() => setMode("happened")}>It happened…</button>
        <button data-do="approve" disabled=${busy || rest > 0} onClick=${approve}>Run it again</button>
        <button class="danger" data-do="deny" disabled=${busy} onClick=${() => setMode("deny")}>Leave it…</button>`}
      ${busy && html`<span class="muted" role="status">Sending…</span>`}
    </div>
  </article>`;
}

// Effect shows what a call would change: the lines of a file before and after it.
function Effect({ preview }) {
  const lines = near(diff(preview.before.replace(/\n$/, ""), preview.after.replace(/\n$/, "")));
  return html`<p class="preview"><span class="mono">${visible(preview.path)}</span> <span class="muted">${preview.exists ? "would change" : "a new file"}</span></p>
    ${lines.some((l) => l.sign !== " " && l.sign !== "…") ? html`<${Diffed} lines=${lines} label=${"changes of " + preview.path} />` : html`<p class="muted">The text of the file would stay the same.</p>`}`;
}

function tidy(text) {
  try {
    return pretty(parse(text || "{}"));
  } catch {
    return text;
  }
}
