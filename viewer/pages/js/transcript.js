// The conversation of a run, in order.
import { html, useState } from "../vendor/htm-preact.js";
import { transcript } from "./fold.js";
import { argsOf, resultText } from "./json.js";
import { Markdown } from "./markdown.js";
import { Badge, Empty, Icon } from "./parts.js";
import { Question } from "./question.js";
import { isQuiet } from "./states.js";
import { ResultView } from "./try.js";
import { line, Long, plural, visible } from "./text.js";

export function Transcript({ run, given, pending, watch, onSelect }) {
  const all = transcript(run, given);
  const [most, setMost] = useState(200);
  const shown = all.slice(-most);
  return html`<div class="thread" aria-live="off">
    ${all.length > shown.length && html`<p class="center"><button onClick=${() => setMost(most + 400)}>Show ${Math.min(400, all.length - shown.length)} earlier</button></p>`}
    ${shown.map((x) => html`<${MessageView} key=${x.request?.key || x.call?.key || undefined} x=${x} pending=${pending} watch=${watch} onSelect=${onSelect} />`)}
    ${run.end && html`<${Ending} end=${run.end} />`}
  </div>`;
}

export function Ending({ end }) {
  if (isQuiet(end.stop)) return null;
  return html`<div class="ending"><${Badge} state=${end.stop || "failed"} /> ${visible(end.error || end.cause || "")}</div>`;
}

const who = { user: "User", system: "System", developer: "Developer", assistant: "Model", tool: "Results" };

// MessageView shows a message, a reply, or a call with its result.
export function MessageView({ x, pending, watch, onSelect, brief }) {
  if (x.call) return html`<${CallView} n=${x.call} pending=${pending} watch=${watch} onSelect=${onSelect} brief=${brief} />`;
  if (x.request) return html`<${Reply} n=${x.request} onSelect=${onSelect} />`;
  const m = x.message;
  return html`<article class=${"msg " + m.role} aria-label=${who[m.role] || m.role}>
    <div class="who">${who[m.role] || visible(String(m.role))}${x.steered ? html` <span class="chip">sent on the way</span>` : ""}</div>
    <div class="said">${(m.parts || []).map((p) => html`<${Part} p=${p} />`)}</div>
  </article>`;
}

function Part({ p }) {
  if (p.type === "text") return html`<${Markdown} text=${p.text} />`;
  if (p.type === "reasoning") return p.text && html`<details class="thought"><summary>Reasoning</summary><${Long} text=${p.text} kind="prose" label="reasoning" /></details>`;
  if (p.type === "tool_call") return html`<div class="callline"><span class="mono">${visible(p.name)}</span><${Long} text=${argsOf(p)} kind="json" label="arguments" /></div>`;
  if (p.type === "tool_result") return html`<${ResultView} result=${p} />`;
  if (p.type === "media") return html`<p class="muted">[${visible(p.mime || "media")}${p.url ? html` at ${visible(p.url)}` : ""}]</p>`;
  return html`<p class="muted">[${visible(String(p.type))}]</p>`;
}

function Reply({ n, onSelect }) {
  const parts = n.response?.message?.parts;
  const live = !parts;
  const thought = live ? n.reasoning : parts.filter((p) => p.type === "reasoning").map((p) => p.text).join("\n");
  const text = live ? n.text : parts.filter((p) => p.type === "text").map((p) => p.text).join("");
  const calls = live ? [...n.deltas.values()] : [];
  if (!text && !thought && !calls.length && !n.running && !n.error) return null;
  return html`<article class="msg assistant" aria-label="Model" aria-busy=${n.running ? "true" : "false"}>
    <div class="who">Model${onSelect && html` <button class="linkish" onClick=${() => onSelect(n.key)}>details</button>`}</div>
    <div class="said">
      ${thought && html`<details class="thought" open=${live && !text}><summary>Reasoning</summary><${Long} text=${thought} kind="prose" label="reasoning" /></details>`}
      ${text && html`<${Markdown} text=${text} />`}
      ${calls.map((d) => html`<p class="muted mono small">${visible(d.name || "…")}(${line(d.text.join(""), 80)}</p>`)}
      ${n.error && html`<p class="wrong">${text || calls.length ? "The reply is incomplete: " : "No reply: "}${visible(n.error.slice(0, 2000))}</p>`}
      ${n.running && html`<span class="caret" aria-hidden="true"></span>`}
    </div>
  </article>`;
}

function CallView({ n, pending, watch, onSelect, brief }) {
  const x = n.execution;
  const open = pending?.find((w) => w.key === n.key || w.key.startsWith(n.key + "/"));
  const call = x?.call || n.started;
  const outcome = n.running ? "running" : x?.outcome;
  const text = resultText(x?.result);
  return html`<article class=${"msg call " + (outcome || "")} aria-label=${"Call of " + (n.name || "")}>
    <details open=${!!open || (brief && false)}>
      <summary><span class="kindicon call"><${Icon} name="call" /></span><span class="mono">${visible(n.name || "?")}</span><span class="sub mono">${line(argsOf(call).replace(/\s+/g, " "), 90)}</span>${outcome && html`<${Badge} state=${outcome} />`}${!open && text ? html`<span class="gave">${line(text, 110)}</span>` : ""}</summary>
      ${!open && html`<div class="callbody"><p class="label">Arguments</p><${Long} text=${argsOf(call)} kind="json" label="arguments" />${x && x.outcome !== "pending" && html`<p class="label">Result</p><${ResultView} result=${x.result} />`}
        ${onSelect && html`<button class="linkish" onClick=${() => onSelect(n.key)}>details</button>`}</div>`}
    </details>
    ${open && watch && html`<${Question} run=${watch.id} agent=${watch.head?.agent} w=${open} />`}
  </article>`;
}
